"""From a failing scenario to the least one that fails the same way, written as a person would have written it."""

from collections.abc import Callable
from typing import Any

import pytest

from harness.explore.shrink import shrink
from scenarios.dumping import dump
from scenarios.loading import parse
from scenarios.model import Arm, Cancel, Fail, Scenario, Submit


def story(*steps: dict[str, Any], **more: Any) -> Scenario:
    return Scenario.model_validate({"name": "found", "summary": "As it was found.", "steps": steps, **more})


def submit(at: float, operation: str) -> dict[str, Any]:
    return {"at": at, "do": "submit", "operation": operation}


def has(*wanted: Callable[[Any], bool]) -> Callable[[Scenario], bool]:
    """Fails if there is a step of each kind, in this order."""

    def is_broken(scenario: Scenario) -> bool:
        steps = iter(scenario.steps)
        return all(any(each(step) for step in steps) for each in wanted)

    return is_broken


def test_only_what_the_failure_needs_is_left() -> None:
    found = story(
        submit(0, "op-1"),
        submit(2, "op-2"),
        {"at": 3, "do": "cancel", "operation": "op-2"},
        {"at": 9.25, "do": "wait"},
        requirements=["W1.1"],
        workers=2,
        work={"op-1": {"takes_s": 7}, "op-2": {"takes_s": 60}},
    )
    least = shrink(found, has(lambda step: isinstance(step, Submit)))
    assert least == story(submit(0, "op-1"))


def test_operations_are_numbered_from_one_wherever_they_are_named() -> None:
    fault = {"kind": "answer_lost", "at": "status#1:committed@op-3", "times": 1}
    found = story(
        submit(0, "op-3"), {"at": 0, "do": "fail", "operation": "op-3"}, faults=[fault], work={"op-3": {"takes_s": 60}}
    )

    def is_broken(scenario: Scenario) -> bool:
        submitted = {step.operation for step in scenario.steps if isinstance(step, Submit)}
        failed = {step.operation for step in scenario.steps if isinstance(step, Fail)}
        hit = {each.at.operation for each in scenario.faults}
        return bool(submitted) and submitted == failed == hit == set(scenario.work)

    assert shrink(found, is_broken) == story(
        submit(0, "op-1"),
        {"at": 0, "do": "fail", "operation": "op-1"},
        faults=[{**fault, "at": "status#1:committed@op-1"}],
        work={"op-1": {}},
    )


def test_who_commanded_it_and_why_matters_to_people_only() -> None:
    found = story(
        submit(0, "op-1"), {"at": 1, "do": "cancel", "operation": "op-1", "who": "anna", "why": "wrong month"}
    )
    least = shrink(found, has(lambda step: isinstance(step, Cancel)))
    assert least == story(submit(0, "op-1"), {"at": 0, "do": "cancel", "operation": "op-1"})


def test_a_fault_is_planned_where_it_makes_no_difference_when_it_was_armed() -> None:
    fault = {"kind": "answer_lost", "at": "create#1:committed", "times": 1}
    found = story({"at": 0, "do": "arm", "fault": fault}, submit(0, "op-1"))

    def is_broken(scenario: Scenario) -> bool:
        armed = [step.fault for step in scenario.steps if isinstance(step, Arm)]
        submits = any(isinstance(step, Submit) for step in scenario.steps)
        return submits and any(each.kind == "answer_lost" for each in (*armed, *scenario.faults))

    assert shrink(found, is_broken) == story(submit(0, "op-1"), faults=[fault])
    armed_late = has(lambda step: isinstance(step, Arm), lambda step: isinstance(step, Submit))
    assert shrink(found, armed_late) == found


@pytest.mark.parametrize(("least_wait", "told"), [(0, 0), (0.4, 1), (1, 1), (2.5, 3)])
def test_nothing_waits_longer_than_it_must(least_wait: float, told: float) -> None:
    found = story(submit(3, "op-1"), {"at": 14.217, "do": "cancel", "operation": "op-1"})

    def is_broken(scenario: Scenario) -> bool:
        at = {type(step): step.at for step in scenario.steps}
        return {Submit, Cancel} <= at.keys() and at[Cancel] - at[Submit] >= least_wait

    least = shrink(found, is_broken)
    assert [step.at for step in least.steps] == [0, told]


@pytest.mark.parametrize("times", [7, "until_healed"])
def test_a_fault_strikes_no_oftener_than_it_must(times: int | str) -> None:
    def lasts(scenario: Scenario) -> bool:
        strikes = [each.times for each in scenario.faults]
        return any(each == "until_healed" or each >= 2 for each in strikes)

    found = story(submit(0, "op-1"), faults=[{"kind": "server_error", "at": "create#1:received", "times": times}])
    (fault,) = shrink(found, lasts).faults
    assert fault.times == 2


def test_the_least_one_can_be_written_and_read_back() -> None:
    found = story(
        {"at": 1, "do": "arm", "fault": {"kind": "kill", "at": "create#1:received@op-2"}},
        submit(1, "op-2"),
        workers=2,
    )
    least = shrink(found, has(lambda step: isinstance(step, Submit)))
    assert parse(dump(least)) == least


def test_no_more_runs_are_made_than_allowed() -> None:
    asked = 0

    def is_broken(_: Scenario) -> bool:
        nonlocal asked
        asked += 1
        return False

    found = story(*(submit(number, f"op-{number}") for number in range(1, 9)))
    assert shrink(found, is_broken, max_runs=5) == found
    assert asked == 5
