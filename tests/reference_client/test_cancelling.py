"""Cancelling: the intent first, one call, and no claim without a status read (W6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reference_client.lifecycle import Evidence, LocalState
from reference_client.operation import Call, Reconcile, Stop
from reference_client.workflow import Rest, Send, Wait

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.reference_client.conftest import Say, Story

S = LocalState
STOP = Stop(who="ann", why="the wrong month")


def asked(story: Story, now: float = 1.0) -> Story:
    story.accepted()
    story.told(STOP, now)
    return story


def test_the_intent_says_who_why_and_what_is_expected(story: Story) -> None:
    asked(story).settle(1.0)
    given = next(entry for entry in story.entries if entry.kind == "note")
    assert (given.cause, given.reason) == ("stop command of ann", "the wrong month")
    assert "may remain" in given.facts["expected"]
    assert story.operation.state is S.CANCEL_REQUESTED
    assert story.operation.cancel_deadline == 6


def test_a_cancel_call_names_the_stored_job(story: Story) -> None:
    action = asked(story).settle(1.0)
    assert isinstance(action, Send)
    begun = story.workflow.begin(story.operation, action, worker="w1", fence=1, now=1.0).operation
    request = story.workflow.request(begun)
    assert (request.method, request.path) == ("DELETE", "/v1/jobs/job_1")


@pytest.mark.parametrize(("status", "state"), [(202, "cancelling"), (200, "cancelled")])
def test_an_answered_call_proves_nothing_until_the_status_is_read(
    story: Story, say: type[Say], status: int, state: str
) -> None:
    operation = asked(story).call(say.answer(status, say.job(state)), 1.0)
    assert operation.state is S.CANCELLING
    operation = story.call(say.status("cancelled"), operation.next_attempt_at)
    assert operation.state is S.CANCELLED
    assert story.entries[-1].evidence is Evidence.STATUS_CANCELLED


@pytest.mark.parametrize(
    ("state", "after"), [("succeeded", S.RESULT_COLLECTING), ("failed", S.FAILED), ("cancelled", S.CANCELLED)]
)
def test_however_the_race_ends_it_is_told_as_it_happened(
    story: Story, say: type[Say], state: str, after: LocalState
) -> None:
    asked(story).call(say.answer(202, say.job("cancelling")), 1.0)
    assert story.call(say.status(state), story.operation.next_attempt_at).state is after


def test_there_is_one_call_for_an_intent(story: Story, say: type[Say]) -> None:
    asked(story).call(say.answer(202, say.job("cancelling")), 1.0)
    story.told(Stop(who="bob", why="me too"), 1.1)
    action = story.settle(story.operation.next_attempt_at)
    assert isinstance(action, Send)
    assert action.call is Call.STATUS
    assert story.operation.cancel_calls == 1


def test_an_unanswered_call_is_repeated_where_that_is_harmless(story: Story, say: type[Say]) -> None:
    operation = asked(story).call(say.nothing(), 1.0)
    action = story.next(operation.next_cancel_at)
    assert isinstance(action, Send)
    assert action.call is Call.CANCEL


def test_an_unanswered_call_is_not_repeated_where_that_is_not_promised(
    make_story: Callable[..., Story], say: type[Say]
) -> None:
    story = asked(make_story(cancel={"repeatable": False}))
    story.call(say.nothing(), 1.0)
    for now in (2.0, 3.0, 4.0):
        action = story.next(now)
        assert not isinstance(action, Send) or action.call is Call.STATUS


def test_where_there_is_no_cancel_call_none_is_made(make_story: Callable[..., Story]) -> None:
    story = asked(make_story(cancel={"effect": "unsupported"}))
    action = story.settle(1.0)
    assert story.operation.state is S.CANCEL_REQUESTED
    assert not isinstance(action, Send) or action.call is Call.STATUS


@pytest.mark.parametrize(("status", "name"), [(409, "job-finished"), (404, "not-found"), (405, "method-not-allowed")])
def test_a_refused_call_is_no_end_the_status_tells(story: Story, say: type[Say], status: int, name: str) -> None:
    operation = asked(story).call(say.problem(status, name), 1.0)
    assert operation.state is S.CANCEL_REQUESTED
    assert story.call(say.status("succeeded"), operation.next_attempt_at).state is S.RESULT_COLLECTING


def test_a_stop_before_the_job_is_known_is_kept_and_acted_on_then(story: Story, say: type[Say]) -> None:
    story.call(say.nothing(), 0.0)
    assert story.told(STOP, 0.1).state is S.CREATE_UNKNOWN
    story.call(say.answer(202, say.job()), story.operation.next_attempt_at)
    action = story.settle(1.0)
    assert story.operation.state is S.CANCEL_REQUESTED
    assert isinstance(action, Send)
    assert action.call is Call.CANCEL


def test_a_stop_before_anything_was_sent_withdraws(story: Story) -> None:
    story.told(STOP, 0.0)
    assert isinstance(story.settle(0.0), Rest)
    assert story.operation.state is S.WITHDRAWN


def test_after_the_cancel_deadline_nothing_is_claimed(story: Story, say: type[Say]) -> None:
    asked(story).call(say.answer(202, say.job("cancelling")), 1.0)
    assert isinstance(story.settle(6.0), Rest)
    assert story.operation.state is S.CANCELLATION_UNCONFIRMED
    story.told(Reconcile(who="ann", why="any news?"), 50.0)
    assert story.call(say.status("cancelled"), 50.0).state is S.CANCELLED


def test_a_stop_after_the_result_deadline_still_cancels(story: Story) -> None:
    story.accepted()
    story.settle(20.0)
    story.told(STOP, 25.0)
    action = story.settle(25.0)
    assert story.operation.state is S.CANCEL_REQUESTED
    assert isinstance(action, Send)


def test_a_stop_that_comes_too_late_is_on_record_as_that(story: Story, say: type[Say]) -> None:
    story.accepted()
    story.call(say.status("failed"), 1.0)
    story.told(STOP, 2.0)
    assert "too late" in story.entries[-1].reason
    assert story.operation.state is S.FAILED


def test_a_throttling_provider_gets_its_silence_before_the_cancel_call(story: Story, say: type[Say]) -> None:
    story.accepted()
    story.call(say.problem(429, retry_after="3"), 1.0)
    story.told(STOP, 2.0)
    assert story.settle(2.0) == Wait(4.0)


def test_what_the_provider_tells_of_partial_effects_is_kept(story: Story, say: type[Say]) -> None:
    asked(story).call(say.answer(202, say.job("cancelling", partial_effects=["half a file"])), 1.0)
    answer = say.status("cancelled", partial_effects=["half a file", "a lock"])
    assert story.call(answer, story.operation.next_attempt_at).partial_effects == ("half a file", "a lock")
