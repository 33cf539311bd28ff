"""The unmodified ``openai`` package, patched, through the catalogue: as people write it, and repaired."""

import pytest

from fake_provider.facts import EventDelivered, EventSent
from harness.runner import Job, Result, run, run_many, sort_out
from harness.subjects import Subject, resolve
from scenarios.loading import find, load_catalogue


@pytest.fixture(scope="module")
def naive() -> Subject:
    return resolve("examples.python_openai.naive:build")


@pytest.fixture(scope="module")
def repaired() -> Subject:
    return resolve("examples.python_openai.repaired:build")


def play(name: str, subject: Subject, seed: int = 0) -> Result:
    return run(find(name), subject, mode="patched", seed=seed)


def test_the_repaired_client_passes_every_story_that_applies_to_it(repaired: Subject) -> None:
    jobs = [Job(scenario=scenario, subject=repaired, mode="patched") for scenario in load_catalogue().values()]
    applies, left_out = sort_out(jobs)
    assert len(applies) > 50
    assert {one.scenario for one in left_out} >= {"crash-while-collecting", "stale-lease", "token-forgotten"}
    broken = {
        result.outcome.scenario: result.outcome.reason
        for result in run_many(applies)
        if result.outcome.verdict != "pass"
    }
    assert not broken


def test_the_packages_own_retries_make_a_second_batch(naive: Subject) -> None:
    outcome = play("lost-create-response", naive).outcome
    assert outcome.verdict == "fail"
    (duplicate,) = [finding for finding in outcome.findings if finding.rule == "one-job-per-operation"]
    assert "op-1 has 2 jobs" in duplicate.message


def test_failed_items_go_unreported_by_who_reads_the_output_file_only(naive: Subject) -> None:
    outcome = play("some-items-fail", naive).outcome
    assert "failed-items-reported" in {finding.rule for finding in outcome.findings}


def test_retry_sleeps_cost_nothing_and_are_part_of_the_story(naive: Subject) -> None:
    first, again = (play("create-500-after-the-fact", naive) for _ in range(2))
    sent = [entry.at for entry in first.history if getattr(entry.fact, "endpoint", None) == "create"]
    assert sent[-1] - sent[0] > 0.3
    assert first.outcome.history_sha256 == again.outcome.history_sha256


def test_unwrap_takes_what_is_genuine_by_the_virtual_clock_and_nothing_else(repaired: Subject) -> None:
    history = play("forged-webhook", repaired).history
    genuine = {entry.fact.delivery: entry.fact.genuine for entry in history if isinstance(entry.fact, EventSent)}
    answered = {entry.fact.delivery: entry.fact.status for entry in history if isinstance(entry.fact, EventDelivered)}
    assert set(genuine.values()) == {True, False}
    assert answered == {delivery: 200 if is_so else 400 for delivery, is_so in genuine.items()}
