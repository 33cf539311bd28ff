"""Where two things race, both outcomes are legal: both pass, and a third fails."""

from collections.abc import Callable

import pytest

from tests.harness.rules.histories import SHA, Story

Told = Callable[[Story], Story]


def cancel_is_sent(story: Story) -> Story:
    """A job is accepted, a stop is asked for, and the cancel call is taken: from here on either may win."""
    return story.told("submit").create().told("cancel", at=1).cancel(at=1)


def completion_wins(story: Story) -> Story:
    return cancel_is_sent(story).moved("succeeded", at=1.2).poll("succeeded", at=2).fetch()


def cancel_wins(story: Story) -> Story:
    return cancel_is_sent(story).moved("cancelled", at=1.2).poll("cancelled", at=2)


def failure_wins(story: Story) -> Story:
    return cancel_is_sent(story).moved("failed", at=1.2).poll("failed", at=2)


def create_is_lost(story: Story) -> Story:
    """The create's answer is lost while a stop is asked for."""
    return story.told("submit").lost().told("cancel", at=0.5)


LEGAL: list[tuple[str, Told]] = [
    ("completion won", lambda s: completion_wins(s).claimed("succeeded", sha=SHA, records=3, failed=0)),
    ("the cancel won", lambda s: cancel_wins(s).claimed("cancelled")),
    ("failure won", lambda s: failure_wins(s).claimed("failed")),
    ("nobody can tell yet", lambda s: cancel_is_sent(s).poll(at=2).claimed("cancellation_unconfirmed", at=7)),
    (
        "the lost create was found and stopped",
        lambda s: create_is_lost(s).create(at=1).cancel(at=1).poll("cancelled", at=2).claimed("cancelled"),
    ),
    (
        "the lost create had ended",
        lambda s: (
            create_is_lost(s)
            .moved("failed", at=0.6)
            .create(at=1, state="failed")
            .poll("failed", at=2)
            .claimed("failed")
        ),
    ),
]
ILLEGAL: list[tuple[str, Told, str]] = [
    ("completion won, and is said to be cancelled", lambda s: completion_wins(s).claimed("cancelled"),
     "cancelled-only-if-confirmed"),
    ("the cancel won, and is said to have succeeded", lambda s: cancel_wins(s).claimed("succeeded"),
     "succeeded-only-if-remote-succeeded"),
    ("the cancel won, and is said to have failed", lambda s: cancel_wins(s).claimed("failed"),
     "failed-only-if-remote-failed"),
    ("failure won, and is said to be cancelled", lambda s: failure_wins(s).claimed("cancelled"),
     "cancelled-only-if-confirmed"),
    ("completion won, and its result is said to be gone", lambda s: completion_wins(s).claimed("result_unavailable"),
     "finished-result-not-lost"),
    ("the lost create is said to have been withdrawn", lambda s: create_is_lost(s).claimed("withdrawn", job=None),
     "withdrawn-only-if-never-sent"),
]  # fmt: skip


def rules_broken(told: Told) -> set[str]:
    story = Story()
    told(story).ledger("succeeded").ended(at=60)
    return {finding.rule for finding in story.judgement().findings}


@pytest.mark.parametrize("told", [pytest.param(told, id=name) for name, told in LEGAL])
def test_each_legal_outcome_of_a_race_passes(told: Told) -> None:
    assert rules_broken(told) == set()


@pytest.mark.parametrize(("told", "rule"), [pytest.param(told, rule, id=name) for name, told, rule in ILLEGAL])
def test_a_third_outcome_fails(told: Told, rule: str) -> None:
    assert rule in rules_broken(told)
