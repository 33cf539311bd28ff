"""What people decide, and when it is refused (W5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reference_client.commanding import CommandRefused
from reference_client.lifecycle import Evidence, LocalState
from reference_client.operation import Call, Decision, Reconcile
from reference_client.workflow import Rest, Send

if TYPE_CHECKING:
    from tests.reference_client.conftest import Say, Story

S = LocalState


def undecided(story: Story, say: type[Say]) -> Story:
    story.call(say.nothing(), 0.0)
    story.settle(10.0)
    assert story.operation.state is S.HUMAN_DECISION_REQUIRED
    return story


def decide(state: LocalState, job: str | None = None) -> Decision:
    return Decision(who="ann", why="I asked the provider", state=state, remote_job_id=job)


def test_a_decision_names_who_and_why_and_the_work_goes_on_from_there(story: Story, say: type[Say]) -> None:
    operation = undecided(story, say).told(decide(S.OBSERVING, "job_7"), 100.0)
    assert (operation.state, operation.remote_job_id) == (S.OBSERVING, "job_7")
    assert operation.result_deadline == 120
    moved = story.entries[-1]
    assert (moved.evidence, moved.cause, moved.reason) == (
        Evidence.HUMAN_DECISION,
        "decision of ann",
        "I asked the provider",
    )
    assert story.call(say.status("succeeded", job_id="job_7"), 100.0).state is S.RESULT_COLLECTING


def test_a_person_may_have_the_create_tried_again(story: Story, say: type[Say]) -> None:
    undecided(story, say).told(decide(S.CREATE_UNKNOWN), 100.0)
    action = story.settle(100.0)
    assert isinstance(action, Send)
    assert action.call is Call.CREATE


def test_a_person_may_give_up(story: Story, say: type[Say]) -> None:
    undecided(story, say).told(decide(S.FAILED), 100.0)
    assert isinstance(story.next(1000.0), Rest)


def test_a_person_may_have_the_chosen_job_cancelled(story: Story, say: type[Say]) -> None:
    undecided(story, say).told(decide(S.CANCEL_REQUESTED, "job_7"), 100.0)
    action = story.settle(100.0)
    assert isinstance(action, Send)
    assert action.call is Call.CANCEL


def test_where_a_person_says_that_it_is_being_cancelled_no_second_call_is_made(story: Story, say: type[Say]) -> None:
    undecided(story, say).told(decide(S.CANCELLING, "job_7"), 100.0)
    action = story.settle(100.0)
    assert isinstance(action, Send)
    assert action.call is Call.STATUS


@pytest.mark.parametrize(
    ("decision", "why"),
    [
        (decide(S.OBSERVING), "needs a job"),
        (decide(S.SUCCEEDED), "retrieved and validated"),
        (decide(S.HUMAN_DECISION_REQUIRED), "another state"),
    ],
)
def test_a_decision_that_makes_no_sense_is_refused(story: Story, say: type[Say], decision: Decision, why: str) -> None:
    undecided(story, say)
    with pytest.raises(CommandRefused, match=why):
        story.workflow.check_command(story.operation, decision)


def test_there_is_nothing_to_decide_where_no_decision_is_required(story: Story) -> None:
    with pytest.raises(CommandRefused, match="awaits a decision"):
        story.workflow.check_command(story.operation, decide(S.FAILED))


def test_a_decision_that_comes_second_changes_nothing(story: Story, say: type[Say]) -> None:
    undecided(story, say).told(decide(S.FAILED), 100.0)
    step = story.workflow.take_up(story.operation, decide(S.OBSERVING, "job_7"), actor="w1", now=101.0)
    assert step.operation.state is S.FAILED
    assert "too late" in step.entries[0].reason


def test_a_final_operation_is_not_reconciled(story: Story, say: type[Say]) -> None:
    story.call(say.problem(400), 0.0)
    with pytest.raises(CommandRefused, match="final"):
        story.workflow.check_command(story.operation, Reconcile(who="ann", why="?"))


def test_to_reconcile_what_needs_a_decision_is_answered_with_that(story: Story, say: type[Say]) -> None:
    undecided(story, say).told(Reconcile(who="ann", why="?"), 100.0)
    assert "decision is needed" in story.entries[-1].reason
