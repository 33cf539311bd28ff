"""What a scenario says of itself."""

from typing import get_args

import pytest
from pydantic import ValidationError

from harness.subject import REST_STATES
from scenarios.loading import ScenarioError, parse
from scenarios.model import RestState, Scenario, Submit


def test_the_states_a_story_may_end_in_are_those_in_which_a_client_may_rest() -> None:
    assert set(get_args(RestState)) == REST_STATES


def test_a_request_carries_the_marker_that_joins_it_to_its_operation() -> None:
    step = Submit(at=0, operation="op-1", parameters={"month": "2024-03"})
    assert step.request == {"kind": "report", "client_reference": "op-1", "parameters": {"month": "2024-03"}}


def test_operations_are_listed_once_in_the_order_of_their_first_submit() -> None:
    steps = tuple(Submit(at=0, operation=operation) for operation in ("op-2", "op-1", "op-2"))
    assert Scenario(name="a", summary="b", steps=steps).operations == ("op-2", "op-1")


def test_workers_are_numbered_from_one() -> None:
    steps = (Submit(at=0, operation="op-1", worker="w3"),)
    assert Scenario(name="a", summary="b", workers=3, steps=steps).worker_ids == ("w1", "w2", "w3")


def test_a_contract_may_be_a_preset_by_name() -> None:
    story = "name: a\nsummary: b\ncontract: lookup-only\nsteps: [{at: 0, do: submit, operation: op-1}]\n"
    scenario = parse(story)
    assert scenario.contract.name == "lookup-only"
    assert scenario.contract.idempotency.mechanism == "none"


@pytest.mark.parametrize("word", ["Running", "running"])
def test_an_unknown_state_is_unknown_under_the_contract(word: str) -> None:
    fault = f"faults: [{{kind: unknown_state, at: 'status:committed', word: {word}}}]\n"
    story = "name: a\nsummary: b\ncontract: azure-like\nsteps: [{at: 0, do: submit, operation: op-1}]\n"
    with pytest.raises(ScenarioError, match=f"'{word}' is known"):
        parse(story + fault)


def test_a_scenario_is_frozen() -> None:
    scenario = Scenario(name="a", summary="b", steps=(Submit(at=0, operation="op-1"),))
    with pytest.raises(ValidationError, match="frozen"):
        scenario.seed = 2  # type: ignore[misc]
