"""At every single durable write in turn the store refuses, or the worker dies or is frozen: nothing is lost or doubled.

The n-th point fails, n = 1, 2, 3 …, until a run meets no failure any more. All rules of the harness judge each run.
"""

from __future__ import annotations

from typing import Any

import pytest

from fake_provider.facts import Endpoint, FaultStruck
from harness.runner import Result, run
from harness.subjects import resolve
from harness.verdict import Verdict
from scenarios.loading import find
from scenarios.model import Scenario

LONGEST = 60
"""More durable writes than any of these stories has; reaching it would mean that a fault never stops striking."""

STORIES = ["happy-path", "lost-create-response", "cancel-race-completion-wins", "lookup-proves-absence"]
FAILURES: dict[str, dict[str, Any]] = {
    "the store refuses once": {"kind": "write_refused", "point": "received"},
    "the store refuses until healed": {"kind": "write_refused", "point": "received", "times": "until_healed"},
    "the worker dies before it": {"kind": "kill", "point": "received"},
    "the worker dies after it": {"kind": "kill", "point": "committed"},
    "the worker is frozen past its lease before it": {"kind": "stop", "point": "received", "for_s": 3},
    "the worker is frozen past its lease after it": {"kind": "stop", "point": "committed", "for_s": 3},
}


def told_with(story: str, fault: dict[str, Any], number: int) -> Result:
    scenario = find(story).model_dump(mode="json", exclude_none=True)
    point = fault["point"]
    placed = {key: value for key, value in fault.items() if key != "point"} | {"at": f"store#{number}:{point}"}
    scenario["faults"].append(placed)
    scenario["workers"] = 2
    scenario.pop("ends", None)
    scenario.pop("jobs", None)
    return run(Scenario.model_validate(scenario), resolve(), mode="simulated")


def struck(result: Result) -> bool:
    """Whether the fault at a write did strike; the story's own may not come about without that write."""
    return any(
        isinstance(entry.fact, FaultStruck) and entry.fact.endpoint is Endpoint.STORE for entry in result.history
    )


@pytest.mark.parametrize("story", STORIES)
@pytest.mark.parametrize("failure", FAILURES)
def test_no_failure_at_any_write_breaks_a_rule(story: str, failure: str) -> None:
    for number in range(1, LONGEST):
        result = told_with(story, FAILURES[failure], number)
        assert result.outcome.verdict is not Verdict.FAIL, f"{failure}, write {number}: {result.outcome.findings}"
        if not struck(result):
            assert number > 5, "a story has more writes than that"
            return
    pytest.fail(f"the fault still struck at write {LONGEST}")
