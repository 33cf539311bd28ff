"""Observing: only a terminal remote state steers, a failed read is not a failed job, and every wait ends (W4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reference_client.lifecycle import Evidence, LocalState
from reference_client.operation import Call, EventNotice, Reconcile
from reference_client.workflow import Rest, Send, Wait

if TYPE_CHECKING:
    from tests.reference_client.conftest import Say, Story

S = LocalState
EVENT = EventNotice(event_id="evt_1", type="job.succeeded", remote_job_id="job_1", remote_state="succeeded")


@pytest.mark.parametrize(
    ("state", "after", "evidence"),
    [
        ("succeeded", S.RESULT_COLLECTING, Evidence.STATUS_SUCCESS),
        ("failed", S.FAILED, Evidence.PROVIDER_REPORTS_FAILURE),
        ("cancelled", S.CANCELLED, Evidence.CANCELLED_BY_OTHERS),
    ],
)
def test_a_terminal_state_moves_the_operation(
    story: Story, say: type[Say], state: str, after: LocalState, evidence: Evidence
) -> None:
    story.accepted()
    operation = story.call(say.status(state), 1.0)
    assert (operation.state, operation.remote_state) == (after, state)
    assert story.entries[-1].evidence is evidence


@pytest.mark.parametrize("state", ["running", "queued", "archived", "SUCCEEDED", "done", ""])
def test_no_other_state_does_whatever_the_progress(story: Story, say: type[Say], state: str) -> None:
    story.accepted()
    assert story.call(say.status(state, progress=100), 1.0).state is S.OBSERVING


def test_a_failed_read_is_not_a_failed_job(story: Story, say: type[Say]) -> None:
    story.accepted()
    html = say.answer(200, b"<html>", content_type="text/html")
    for answer in (
        say.nothing(),
        say.problem(500),
        say.problem(429),
        say.problem(404, "not-found"),
        say.problem(401),
        say.problem(410),
        html,
        say.answer(200, b"{"),
        say.answer(200, []),
        say.answer(302, location="http://elsewhere.test/"),
    ):
        assert story.call(answer, story.operation.next_attempt_at).state is S.OBSERVING
        assert story.entries[-1].reason.startswith("nothing learned")


def test_retry_after_is_obeyed_on_a_failed_read_too(story: Story, say: type[Say]) -> None:
    story.accepted()
    story.call(say.problem(503, retry_after="6"), 1.0)
    assert story.next(6.9) == Wait(7.0)
    assert isinstance(story.next(7.0), Send)


def test_a_bad_retry_after_is_noted_and_the_back_off_holds(story: Story, say: type[Say]) -> None:
    story.accepted()
    operation = story.call(say.answer(200, say.job(), retry_after="-5"), 1.0)
    assert "Retry-After" in story.entries[-1].facts["retry_after_ignored"]
    assert operation.next_attempt_at > 1.4


def test_a_retry_after_of_zero_is_no_leave_to_hammer(story: Story, say: type[Say]) -> None:
    story.accepted()
    assert story.call(say.answer(200, say.job(), retry_after="0"), 1.0).next_attempt_at == 1.5


def test_waits_grow_to_the_cap_while_nothing_changes(story: Story, say: type[Say]) -> None:
    story.accepted()
    waits = []
    for _ in range(5):
        now = story.operation.next_attempt_at
        story.call(say.status("running"), now)
        waits.append(story.operation.next_attempt_at - now)
    assert 0.9 <= waits[0] <= 1.1
    assert all(1.8 <= wait < 2.001 for wait in waits[1:])


def test_a_huge_retry_after_is_cut_by_the_deadline_and_never_shortened(story: Story, say: type[Say]) -> None:
    story.accepted()
    story.call(say.answer(200, say.job(), retry_after="9999999"), 1.0)
    assert story.next(1.0) == Wait(20.0)
    assert isinstance(story.settle(20.0), Rest)
    assert story.operation.state is S.RESULT_TIMED_OUT


def test_an_older_state_is_recorded_and_moves_nothing_back(story: Story, say: type[Say]) -> None:
    story.accepted()
    story.call(say.status("running", progress=50), 1.0)
    operation = story.call(say.status("queued", progress=0), story.operation.next_attempt_at)
    assert (operation.remote_state, operation.progress) == ("running", 50)
    assert story.entries[-1].facts["said"] == "queued"
    assert "old answer" in story.entries[-1].reason


def test_an_answer_about_another_job_stops_everything_and_both_ids_are_kept(story: Story, say: type[Say]) -> None:
    story.accepted()
    operation = story.call(say.status("succeeded", job_id="job_2"), 1.0)
    assert operation.state is S.HUMAN_DECISION_REQUIRED
    assert (operation.remote_job_id, operation.unfamiliar_job_ids) == ("job_1", ("job_2",))


def test_the_job_of_another_operation_under_our_id_stops_everything(story: Story, say: type[Say]) -> None:
    story.accepted()
    answer = say.answer(200, say.job() | {"client_reference": "op-9"})
    assert story.call(answer, 1.0).state is S.HUMAN_DECISION_REQUIRED


def test_a_status_url_that_moved_within_the_origin_is_followed_by_a_new_recorded_read(
    story: Story, say: type[Say]
) -> None:
    story.accepted()
    story.call(say.answer(301, location="/v2/jobs/job_1"), 1.0)
    story.settle(story.operation.next_attempt_at)
    assert story.workflow.request(story.operation).path == "/v2/jobs/job_1"


def test_the_result_deadline_is_a_state_from_which_a_person_may_have_it_read_again(
    story: Story, say: type[Say]
) -> None:
    story.accepted()
    assert isinstance(story.settle(20.0), Rest)
    assert story.operation.state is S.RESULT_TIMED_OUT
    story.told(Reconcile(who="ann", why="it must be done by now"), 30.0)
    operation = story.call(say.status("succeeded"), 30.0)
    assert operation.state is S.RESULT_COLLECTING
    assert story.entries[-1].evidence is Evidence.LATER_READ


def test_a_later_read_without_news_leaves_it_resting(story: Story, say: type[Say]) -> None:
    story.accepted()
    story.settle(20.0)
    story.told(Reconcile(who="ann", why="?"), 30.0)
    story.call(say.status("running"), 30.0)
    assert isinstance(story.next(31.0), Rest)
    assert story.operation.state is S.RESULT_TIMED_OUT


def test_a_later_read_that_gets_no_answer_ends_too(story: Story, say: type[Say]) -> None:
    story.accepted()
    story.settle(20.0)
    story.told(Reconcile(who="ann", why="?"), 30.0)
    story.call(say.nothing(), 30.0)
    assert isinstance(story.settle(35.0), Rest)
    assert story.entries[-1].reason == "no usable status answer came in time"


def test_an_event_brings_the_next_read_forward_and_does_nothing_else(story: Story, say: type[Say]) -> None:
    story.accepted()
    story.call(say.answer(200, say.job(), retry_after="15"), 1.0)
    operation = story.told(EVENT, 2.0)
    assert operation.state is S.OBSERVING
    assert operation.remote_state == "running"
    assert story.next(2.0) == Send(Call.STATUS, "the poll that is due")


def test_an_event_does_not_break_the_silence_that_a_throttling_provider_asked_for(story: Story, say: type[Say]) -> None:
    story.accepted()
    story.call(say.problem(429, retry_after="9"), 1.0)
    story.told(EVENT, 2.0)
    assert story.next(2.0) == Wait(10.0)


def test_every_read_has_its_intent_and_its_outcome_on_record(story: Story, say: type[Say]) -> None:
    story.accepted()
    story.call(say.answer(200, say.job(), x_request_id="req_7"), 1.0)
    intent, outcome = story.entries[-2:]
    assert (intent.begins, outcome.ends) == (Call.STATUS, Call.STATUS)
    assert outcome.facts["request_id"] == "req_7"
    assert outcome.facts["body_sha256"].startswith("sha256:")
