"""The table of W5, and that nothing else is possible."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from reference_client.lifecycle import AT_REST, FINAL, TRANSITIONS, Evidence, IllegalTransition, LocalState, check
from reference_client.steps import Draft

if TYPE_CHECKING:
    from tests.reference_client.conftest import Story

S, E = LocalState, Evidence


@pytest.mark.parametrize(("before", "after"), sorted(TRANSITIONS))
def test_each_edge_of_the_table_is_allowed_on_its_evidence(before: LocalState, after: LocalState) -> None:
    for evidence in TRANSITIONS[before, after]:
        check(before, after, evidence)


@pytest.mark.parametrize(("before", "after"), sorted(TRANSITIONS))
def test_each_edge_is_refused_on_any_other_evidence(before: LocalState, after: LocalState) -> None:
    for evidence in set(Evidence) - TRANSITIONS[before, after]:
        with pytest.raises(IllegalTransition, match="needs"):
            check(before, after, evidence)


def test_every_absent_pair_is_refused() -> None:
    absent = [pair for pair in itertools.product(LocalState, LocalState) if pair not in TRANSITIONS]
    assert len(absent) > 200
    for before, after in absent:
        for evidence in Evidence:
            with pytest.raises(IllegalTransition, match=f"does not go from {before} to {after}"):
                check(before, after, evidence)


def test_final_states_have_no_way_out() -> None:
    assert {before for before, _ in TRANSITIONS}.isdisjoint(FINAL)


def test_each_state_that_is_not_final_has_a_way_out_and_each_but_the_first_a_way_in() -> None:
    assert {before for before, _ in TRANSITIONS} == set(S) - FINAL
    assert {after for _, after in TRANSITIONS} == set(S)


def test_states_at_rest_are_left_only_on_somebodys_word() -> None:
    words = {E.LATER_READ, E.STOP_COMMAND, E.OPERATOR_RETRY, E.HUMAN_DECISION, E.CONTRACT_VIOLATION}
    left = [evidence for (before, _), evidence in TRANSITIONS.items() if before in AT_REST]
    assert left
    assert all(evidence <= words for evidence in left)


def test_an_illegal_move_raises_and_leaves_the_record_as_it_was(story: Story) -> None:
    before = story.operation
    with pytest.raises(IllegalTransition):
        Draft(before, actor="w1", now=1.0).move(S.SUCCEEDED, E.RESULT_VALIDATED, cause="hope", reason="progress 100")
    assert story.operation is before
    assert before.state is S.CREATE_PENDING


def test_a_state_does_not_change_by_setting_a_field(story: Story) -> None:
    with pytest.raises(TypeError, match="move"):
        Draft(story.operation, actor="w1", now=1.0).set(state=S.SUCCEEDED)
