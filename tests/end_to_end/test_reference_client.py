"""The reference client survives every scenario, in virtual time and as real processes, and the history explains how."""

import json
import os
import subprocess
import sys

import pytest

from fake_provider.facts import EventDelivered, FaultStruck, JobCreated, RequestSent
from harness.history import Claimed, History, ProcessReaped, StateRecorded, WorkerEnded, WorkerStarted
from harness.runner import Job, Result, run, run_many
from harness.subjects import resolve
from harness.verdict import Verdict
from scenarios.loading import load_catalogue

CATALOGUE = load_catalogue()
W10 = [
    "lost-create-response",
    "crash-before-first-poll",
    "cancel-race-completion-wins",
    "duplicate-webhook",
    "stale-lease",
]


def explain(result: Result) -> str:
    """What a reader of a failed test wants to see first."""
    findings = "\n".join(f"{each.rule}: {each.message}" for each in result.outcome.findings)
    return f"{result.outcome.scenario} ({result.outcome.mode}): {result.outcome.reason}\n{findings}"


@pytest.mark.parametrize("name", sorted(name for name, each in CATALOGUE.items() if "simulated" in each.modes))
def test_it_passes_in_virtual_time(name: str) -> None:
    result = run(CATALOGUE[name], resolve(), mode="simulated")
    assert result.outcome.verdict is Verdict.PASS, explain(result)
    assert result.outcome.faults_struck == result.outcome.faults_planned
    assert result.outcome.rules_judged >= 15


@pytest.fixture(scope="module")
def real_runs() -> dict[str, Result]:
    """Every scenario that real processes can play, side by side."""
    jobs = [
        Job(scenario=scenario, subject=resolve(), mode="process")
        for scenario in CATALOGUE.values()
        if "process" in scenario.modes
    ]
    return {result.outcome.scenario: result for result in run_many(jobs)}


@pytest.mark.parametrize("name", sorted(name for name, each in CATALOGUE.items() if "process" in each.modes))
def test_it_passes_as_real_processes(name: str, real_runs: dict[str, Result]) -> None:
    result = real_runs[name]
    assert result.outcome.verdict is Verdict.PASS, explain(result)


def test_a_worker_is_really_killed_and_another_process_carries_on(real_runs: dict[str, Result]) -> None:
    history = real_runs["crash-before-first-poll"].history
    ends = [entry for entry in history if isinstance(entry.fact, WorkerEnded) and entry.fact.how == "killed"]
    assert len(ends) == 1
    reaped = [entry.fact.status for entry in history if isinstance(entry.fact, ProcessReaped)]
    assert reaped[0] == "signal 9"
    starts = [entry.fact.life for entry in history if isinstance(entry.fact, WorkerStarted)]
    assert starts == [1, 2]
    recorded = [entry for entry in history if isinstance(entry.fact, StateRecorded)]
    before = [
        entry.fact.after for entry in recorded if entry.seq < ends[0].seq and isinstance(entry.fact, StateRecorded)
    ]
    after = [entry.fact for entry in recorded if entry.seq > ends[0].seq and isinstance(entry.fact, StateRecorded)]
    # The second process goes on from the record of the first: it does not create, it observes.
    assert before[-1] == "accepted"
    assert after[0].before == "accepted"
    assert sum(isinstance(entry.fact, JobCreated) for entry in history) == 1


@pytest.mark.parametrize("name", W10)
def test_the_history_alone_tells_which_fault_struck_and_what_the_client_did_next(
    name: str, real_runs: dict[str, Result]
) -> None:
    for history in (run(CATALOGUE[name], resolve()).history, real_runs[name].history):
        struck = [entry for entry in history if isinstance(entry.fact, FaultStruck)]
        assert struck, "no fault struck"
        later = [entry.fact for entry in history if entry.seq > struck[0].seq]
        # It sends or records something next, or answers the webhook that came once more and does nothing, as it should.
        assert any(isinstance(fact, RequestSent | StateRecorded | EventDelivered) for fact in later)
        assert any(isinstance(fact, Claimed) and fact.at_rest for fact in later)


@pytest.mark.parametrize("name", W10)
def test_the_same_seed_gives_the_same_history_byte_for_byte_in_other_processes(name: str) -> None:
    here = run(CATALOGUE[name], resolve(), seed=7)
    digests = {here.outcome.history_sha256}
    for hash_seed in ("1", "2"):
        command = [sys.executable, "-m", "harness", "replay", name, "--seed", "7", "--json", "-"]
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        done = subprocess.run(command, capture_output=True, check=True, env=environment)  # noqa: S603  our own words
        digests |= {each["history_sha256"] for each in json.loads(done.stdout)["runs"]}
    assert len(digests) == 1


def test_another_seed_gives_another_history() -> None:
    first = run(CATALOGUE["happy-path"], resolve(), seed=1)
    second = run(CATALOGUE["happy-path"], resolve(), seed=2)
    assert first.outcome.history_sha256 != second.outcome.history_sha256


def test_a_history_read_back_from_disk_judges_the_same() -> None:
    result = run(CATALOGUE["stale-lease"], resolve())
    again = History.from_jsonl(result.history.to_jsonl())
    assert list(again) == list(result.history)
