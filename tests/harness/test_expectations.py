"""What a story expects of its end, and when it came about at all."""

from collections.abc import Callable

import pytest

from harness.expectations import broken_expectations, never_begun
from harness.history import History
from harness.runner import run
from harness.subject import Claim
from harness.subjects import resolve
from harness.verdict import Verdict
from scenarios.loading import find
from scenarios.model import Scenario
from tests.harness.rules.histories import Story

STOPPED = Scenario.model_validate(
    {
        "name": "stopped",
        "summary": "s",
        "steps": [{"at": 0, "do": "submit", "operation": "op-1"}, {"at": 1, "do": "cancel", "operation": "op-1"}],
        "ends": {"op-1": ["cancelled"]},
    }
)
WITHDRAWN = [Claim(operation="op-1", state="withdrawn")]


def told(story: Story) -> History:
    return story.told("submit").told("cancel", at=1).history


def expecting(*ends: str) -> Scenario:
    return STOPPED.model_copy(update={"ends": {"op-1": ends}})


def test_an_operation_that_was_stopped_before_it_was_begun_breaks_no_story() -> None:
    history = told(Story())
    assert list(never_begun(STOPPED, claims=WITHDRAWN, history=history)) == ["op-1"]
    assert list(broken_expectations(STOPPED, claims=WITHDRAWN, history=history, silence=str)) == []


@pytest.mark.parametrize(
    "history",
    [
        pytest.param(lambda: Story().told("submit").history, id="nobody said to stop"),
        pytest.param(lambda: told(Story().lost(job=None)), id="something was sent"),
        pytest.param(lambda: Story().told("submit").told("cancel", "op-2").history, id="another was to be stopped"),
    ],
)
def test_any_other_is_not_to_be_withdrawn(history: Callable[[], History]) -> None:
    assert list(never_begun(STOPPED, claims=WITHDRAWN, history=history())) == []
    (finding,) = broken_expectations(STOPPED, claims=WITHDRAWN, history=history(), silence=str)
    assert finding.message == "op-1 ended as withdrawn; this story allows cancelled"


def test_a_story_that_allows_for_it_has_come_about() -> None:
    assert list(never_begun(expecting("withdrawn", "cancelled"), claims=WITHDRAWN, history=told(Story()))) == []


def test_workers_that_do_not_agree_break_the_story() -> None:
    claims = [*WITHDRAWN, Claim(operation="op-1", state="observing")]
    assert len(list(broken_expectations(STOPPED, claims=claims, history=told(Story()), silence=str))) == 1


def test_a_run_in_which_the_story_did_not_come_about_is_unknown() -> None:
    outcome = run(find("cancel-by-post"), resolve("tests.correct_clients.begins_late:build")).outcome
    assert (outcome.verdict, outcome.findings) == (Verdict.UNKNOWN, ())
    assert "op-1 was withdrawn before anything was sent, so that its story did not come about" in outcome.reason
