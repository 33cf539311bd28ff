"""A sweep reaches what it says it reaches, counts it, and shrinks and saves what it finds."""

import signal
from pathlib import Path

import msgspec
import pytest

from harness.explore.attempts import _ManyHands, crew
from harness.explore.sweep import CORE, sweep
from harness.runner import run
from harness.stage import SubjectError
from harness.subjects import resolve
from harness.subjects.resolve import Subject
from harness.verdict import Verdict
from scenarios.loading import find, load
from scenarios.model import Scenario, Submit

BRIEF = Scenario(
    name="brief",
    summary="The job is done when its create is answered.",
    contract={"create_answer": "synchronous", "result": {"kind": "inline"}},
    steps=(Submit(at=0, operation="op-1"),),
)
"""The story with the fewest places: one create, and the writes around it."""


def test_the_reference_client_is_swept_without_a_finding_and_the_counts_add_up() -> None:
    told: list[tuple[str, int, int]] = []
    found = sweep(resolve(), [BRIEF], cores=1, tell=lambda *what: told.append(what))
    assert found.findings == ()
    assert found.verdict is Verdict.PASS, found.reason
    (story,) = found.stories
    assert story.placements == story.pruned + story.runs_made + story.not_made
    assert story.pruned > 0
    assert story.not_made == 0
    assert told[-1] == ("one fault", story.runs_made, story.runs_made)


def test_several_processes_come_to_the_same_as_one() -> None:
    one, two = (sweep(resolve(), [BRIEF], faults=2, most_runs=60, cores=cores) for cores in (1, 2))
    assert msgspec.structs.replace(one, seconds=0) == msgspec.structs.replace(two, seconds=0)


def test_a_limit_on_runs_is_kept_and_what_it_left_is_counted() -> None:
    found = sweep(resolve(), [BRIEF], most_runs=20, cores=1)
    assert found.stories[0].runs_made == 20
    assert found.stories[0].not_made > 0
    assert "not made" in found.reason


@pytest.mark.parametrize(
    ("broken", "rule"),
    [("new_token_per_retry", "one-job-per-operation"), ("sends_before_recording", "record-before-request")],
)
def test_what_breaks_a_rule_is_shrunk_and_saved_and_replays(broken: str, rule: str, tmp_path: Path) -> None:
    subject = resolve(f"tests.broken_clients.{broken}:build")
    found = sweep(subject, [BRIEF], cores=1, most_runs=90, save=tmp_path)
    assert found.verdict is Verdict.FAIL
    assert rule in {finding.rule for finding in found.findings}
    saved = load(tmp_path / f"swept-{rule}.yaml")
    assert str(tmp_path / f"{saved.name}.yaml") in found.saved_scenarios
    assert len(saved.faults) <= 1
    assert rule in {finding.rule for finding in run(saved, subject).outcome.findings}
    assert run(saved, resolve()).outcome.findings == ()


def test_a_subject_that_cannot_be_simulated_is_refused_in_words() -> None:
    with pytest.raises(SubjectError, match="cannot be swept"):
        sweep(Subject(name="true", command=("true",)), [BRIEF])


def test_the_core_scenarios_are_there() -> None:
    assert {find(name).name for name in CORE} == set(CORE)


def test_an_interrupt_is_left_to_the_first_process_of_a_crew() -> None:
    """The others ignore it from their start on, before they have loaded anything."""
    with crew(resolve(), (find("happy-path"),), seed=None, cores=2, deepest=1, looks=False) as hands:
        assert isinstance(hands, _ManyHands)
        assert hands._pool.submit(signal.getsignal, signal.SIGINT).result() is signal.SIG_IGN
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
