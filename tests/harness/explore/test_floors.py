"""What an exploration must have visited, and what it is told where it has not."""

from pathlib import Path

import pytest

from fake_provider.contract import Contract
from harness.explore import floors
from harness.explore.exploration import explore
from harness.explore.floors import SHARES, expected_transitions, expected_values, shortfalls, values_of
from harness.subjects import resolve
from harness.verdict import Verdict
from tests.correct_clients import one_lease_per_job


def test_what_falls_short_is_named_with_what_was_asked() -> None:
    (told,) = shortfalls(1000, {"fault kinds": (["kill"], ["kill", "stop"]), "points": (["a"], ["a"])})
    assert told == "1 of 2 fault kinds were visited, where 1000 examples are to visit 100%; not visited: stop"


def test_the_floors_rise_with_the_examples() -> None:
    half = {"fault kinds": (["kill"], ["kill", "stop"])}
    met = [examples for examples in (10, 50, 200, 1000) if not list(shortfalls(examples, half))]
    assert met == [10, 50]
    assert sorted(SHARES) == sorted(SHARES, key=lambda each: each[1])


def test_what_goes_beyond_what_is_asked_for_does_no_harm() -> None:
    assert list(shortfalls(1000, {"fault kinds": (["kill", "stop"], ["kill"])})) == []


def test_every_choice_of_the_plain_contract_is_one_that_is_asked_for() -> None:
    assert set(values_of(Contract())) < expected_values()
    assert {"idempotency.mechanism=none", "cancel.repeatable=false", "webhooks.enabled=true"} < expected_values()


def test_what_only_people_lead_to_is_asked_of_clients_that_take_their_commands() -> None:
    alone, asked, decided = (expected_transitions(told) for told in ((), ("reconcile",), ("reconcile", "decide")))
    assert alone < asked < decided
    assert "result_unavailable -> result_collecting" in asked - alone
    assert "human_decision_required -> observing" in decided - asked
    assert not decided & floors.BEYOND_THE_REFERENCE.keys()


def test_an_exploration_that_went_too_few_places_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(floors, "SHARES", ((1, 1.0),))
    found = explore(resolve(), examples=3, steps=3, seed=1)
    assert found.verdict is Verdict.UNKNOWN
    assert "fault kinds were visited, where" in found.reason


def test_two_hundred_examples_with_the_reference_client_go_nearly_everywhere() -> None:
    found = explore(resolve(), examples=200, steps=30, seed=2)
    assert found.verdict is Verdict.PASS, found.reason
    assert found.transitions_not_taken == ()
    assert len(expected_transitions({"decide", "reconcile"}) - found.transitions_seen.keys()) <= 6
    assert len(floors.expected_kinds() - found.faults_struck_by_kind.keys()) <= 5
    assert floors.expected_points() == found.commit_points_struck.keys()
    assert expected_values() == found.contract_values_seen.keys()


def test_of_a_client_that_notes_nothing_no_transitions_are_asked() -> None:
    found = explore(resolve(f"{one_lease_per_job.__name__}:build"), examples=60, steps=10, seed=1)
    assert found.verdict is Verdict.PASS, found.reason
    assert found.transitions_seen == {}


def test_under_one_contract_only_the_rules_are_asked(tmp_path: Path) -> None:
    found = explore(resolve(), examples=60, steps=10, seed=1, contract=Contract(), save=tmp_path)
    assert found.verdict is Verdict.PASS, found.reason
    assert len(found.contract_values_seen) == len(list(values_of(Contract())))
