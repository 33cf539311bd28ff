"""No rule accuses a client of what it cannot know: that the clock of its host is wrong."""

from itertools import product
from typing import Any

import pytest

from harness.history import ClockSet
from harness.runner import run
from harness.subjects import resolve
from scenarios.model import Scenario

CONTRACTS: dict[str, dict[str, Any]] = {
    "seconds": {},
    "dates": {"status": {"retry_after": "http_date", "retry_after_s": 2}},
    "webhooks": {"webhooks": {"enabled": True, "progress_events": True}},
    "short-keys": {"idempotency": {"key_lifetime_s": 5}, "status": {"retry_after": "none"}},
    "links": {"result": {"kind": "signed_url", "url_lifetime_s": 2}},
}
FAULTS: dict[str, dict[str, Any]] = {
    "as-the-create-leaves": {"at": "create#1:before_receipt"},
    "as-the-create-is-answered": {"at": "create#1:delivered"},
    "as-a-read-is-answered": {"at": "status#2:delivered"},
    "as-the-result-is-asked-for": {"at": "result#1:received"},
}
BESIDES: dict[str, list[dict[str, Any]]] = {
    "nothing else": [],
    "no answer to the create": [{"kind": "answer_lost", "at": "create#1:committed", "times": 3}],
    "the clock is set twice": [{"kind": "clock_skewed", "at": "status#3:received", "ahead_s": -60}],
}
SUBMIT = {"at": 0, "do": "submit", "operation": "op-1"}
STORIES: dict[str, tuple[float, list[dict[str, Any]]]] = {  # how long the work takes, and what happens
    "done": (3, [SUBMIT]),
    "stopped": (60, [SUBMIT, {"at": 2, "do": "cancel", "operation": "op-1"}]),
    "restarted": (3, [SUBMIT, {"at": 2, "do": "kill", "worker": "w1"}, {"at": 3, "do": "start", "worker": "w1"}]),
    "healed": (60, [SUBMIT, {"at": 3, "do": "heal"}, {"at": 8, "do": "wait"}]),
}
CLIENTS = [*(("build", contract) for contract in CONTRACTS), ("build_trusting_dates", "dates")]


@pytest.mark.parametrize("ahead_s", [3600, -3600, 3, -3])
@pytest.mark.parametrize(("client", "contract"), CLIENTS)
def test_a_client_that_goes_by_the_clock_of_its_host_breaks_no_rule(client: str, contract: str, ahead_s: float) -> None:
    subject = resolve(f"tests.correct_clients._own_time:{client}")
    for (when, fault), (what, (takes_s, steps)), (besides, more) in product(
        FAULTS.items(), STORIES.items(), BESIDES.items()
    ):
        scenario = Scenario.model_validate(
            {
                "name": "a-wrong-clock",
                "summary": "The clock of the only worker is set wrong.",
                "contract": CONTRACTS[contract],
                "work": {"default": {"takes_s": takes_s}},
                "steps": steps,
                "faults": [{"kind": "clock_skewed", "ahead_s": ahead_s, **fault}, *more],
            }
        )
        outcome = run(scenario, subject).outcome
        assert outcome.findings == (), f"{when}, {what}, {besides}"


def test_the_clock_is_set_at_the_fault_and_set_right_when_the_faults_are_healed() -> None:
    fault = {"kind": "clock_skewed", "at": "status#1:delivered", "ahead_s": -60}
    scenario = Scenario.model_validate({"name": "a-story", "summary": "s", "steps": [SUBMIT], "faults": [fault]})
    history = run(scenario, resolve()).history
    assert [entry.fact for entry in history if isinstance(entry.fact, ClockSet)] == [
        ClockSet(worker="w1", ahead_s=-60),
        ClockSet(worker="w1", ahead_s=0),
    ]
