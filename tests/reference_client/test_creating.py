"""Creating, and finding out about a create that was not answered (W1, W2, W3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reference_client.adapters.protocol import NoAnswer
from reference_client.creating import OperationConflict
from reference_client.lifecycle import Evidence, LocalState
from reference_client.operation import Call, Stop
from reference_client.workflow import Rest, Send, Wait

if TYPE_CHECKING:
    from collections.abc import Callable

    from reference_client.workflow import Workflow
    from tests.reference_client.conftest import Say, Story

S = LocalState
NO_TOKEN = {"idempotency": {"mechanism": "none"}}
NO_LOOKUP = {"lookup": {"by": "none"}}


def test_the_record_is_complete_before_anything_is_sent(story: Story) -> None:
    operation = story.operation
    assert operation.state is S.CREATE_PENDING
    assert operation.remote_job_id is None
    assert operation.request_fingerprint.startswith("sha256:")
    assert (operation.created_at, operation.create_deadline, operation.result_deadline) == (0, 10, 20)
    assert operation.authorised_by == "ann"
    assert story.entries[0].evidence is Evidence.SUBMITTED


def test_a_token_has_at_least_128_bits_and_is_no_trace_id(story: Story, make_story: Callable[..., Story]) -> None:
    token = story.operation.idempotency_token
    assert len(bytes.fromhex(token)) * 8 >= 128
    assert story.operation.trace_id not in token
    assert make_story().operation.idempotency_token == token, "seeded, so that tests repeat"


def test_another_request_under_a_known_id_is_refused(story: Story) -> None:
    story.workflow.same_request(story.operation, {"kind": "report"})
    with pytest.raises(OperationConflict, match="new operation id"):
        story.workflow.same_request(story.operation, {"kind": "report", "format": "csv"})


def test_an_answer_that_names_the_job_is_recorded_with_the_first_poll(story: Story, say: type[Say]) -> None:
    operation = story.call(say.answer(202, say.job("queued"), retry_after="7", x_request_id="req_1"), 0.0)
    assert (operation.state, operation.remote_job_id) == (S.ACCEPTED, "job_1")
    assert operation.next_attempt_at == 7
    assert story.entries[-1].ends is Call.CREATE
    assert story.entries[-1].facts["request_id"] == "req_1"


def test_a_synchronous_success_is_taken_under_the_same_operation(story: Story, say: type[Say]) -> None:
    body = say.job("succeeded", result={"inline": {"client_reference": "op-1", "records": []}})
    operation = story.call(say.answer(200, body), 0.0)
    assert (operation.state, operation.synchronous) == (S.RESULT_COLLECTING, True)
    story.settle(0.0)
    assert story.operation.state is S.SUCCEEDED


@pytest.mark.parametrize("error", ["timeout", "reset", "cut"])
def test_no_answer_keeps_the_operation_with_class_time_and_attempt(story: Story, say: type[Say], error: str) -> None:
    operation = story.call(say.nothing(error), 3.0)
    assert operation.state is S.CREATE_UNKNOWN
    assert operation.failure is not None
    assert (operation.failure.error, operation.failure.at, operation.failure.attempt) == (error, 3.0, 1)


def test_an_unanswered_create_is_sent_again_byte_for_byte(story: Story, say: type[Say]) -> None:
    workflow = story.workflow
    first = workflow.begin(story.operation, Send(Call.CREATE, ""), worker="w1", fence=1, now=0.0).operation
    story.call(say.nothing(), 0.0)
    action = story.next(story.operation.next_attempt_at)
    again = workflow.begin(story.operation, action, worker="w2", fence=2, now=1.0).operation
    assert again.state is S.RECONCILIATION
    assert workflow.request(again) == workflow.request(first)


def test_a_re_send_waits_for_its_time(story: Story, say: type[Say]) -> None:
    operation = story.call(say.problem(503, retry_after="4"), 1.0)
    assert operation.state is S.CREATE_UNKNOWN
    assert story.next(4.9) == Wait(5.0)
    assert isinstance(story.next(5.0), Send)


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504])
def test_an_answer_that_does_not_say_is_reconciled(story: Story, say: type[Say], status: int) -> None:
    assert story.call(say.problem(status), 0.0).state is S.CREATE_UNKNOWN
    operation = story.call(say.answer(202, say.job()), story.operation.next_attempt_at)
    assert operation.state is S.ACCEPTED
    assert story.entries[-1].evidence is Evidence.RECONCILED_TO_JOB


def test_a_definite_rejection_fails_the_operation(story: Story, say: type[Say]) -> None:
    operation = story.call(say.problem(400, "invalid-request"), 0.0)
    assert operation.state is S.FAILED
    assert "because" in (operation.explanation or "")


def test_a_refused_credential_says_nothing_of_an_earlier_create(story: Story, say: type[Say]) -> None:
    story.call(say.nothing(), 0.0)
    assert story.call(say.problem(401), story.operation.next_attempt_at).state is S.CREATE_UNKNOWN


def test_a_refused_credential_at_first_sending_is_definite(story: Story, say: type[Say]) -> None:
    assert story.call(say.problem(401), 0.0).state is S.FAILED


def test_a_request_that_never_left_is_simply_sent_later(story: Story, say: type[Say]) -> None:
    operation = story.call(say.nothing("connect_failed"), 0.0)
    assert operation.state is S.CREATE_PENDING
    assert operation.first_sent_at is None
    story.told(Stop(who="ann", why="changed my mind"), 0.1)
    story.settle(0.2)
    assert story.operation.state is S.WITHDRAWN


def test_the_create_deadline_ends_the_trying(story: Story, say: type[Say]) -> None:
    story.call(say.nothing(), 0.0)
    assert isinstance(story.settle(10.0), Rest)
    assert story.operation.state is S.HUMAN_DECISION_REQUIRED
    assert "create deadline" in (story.operation.explanation or "")


def test_a_deadline_before_anything_was_sent_says_that_there_is_no_job(story: Story) -> None:
    story.settle(10.0)
    assert story.operation.state is S.HUMAN_DECISION_REQUIRED
    assert "there is no job" in (story.operation.explanation or "")


def test_with_neither_token_nor_look_up_a_person_is_asked_at_once_and_told_why(
    make_story: Callable[..., Story], say: type[Say]
) -> None:
    story = make_story(**NO_TOKEN, **NO_LOOKUP)
    story.call(say.nothing(), 0.0)
    assert isinstance(story.settle(0.0), Rest)
    assert story.operation.state is S.HUMAN_DECISION_REQUIRED
    assert "at-most-once" in (story.operation.explanation or "")


@pytest.mark.parametrize("by", ["by_client_reference", "by_operation_id", "recent_by_request_id"])
def test_without_a_token_the_offered_look_up_is_used(make_story: Callable[..., Story], say: type[Say], by: str) -> None:
    story = make_story(**NO_TOKEN, lookup={"by": by})
    story.call(say.nothing(), 0.0)
    operation = story.call(say.answer(200, {"jobs": [say.job()]}), story.operation.next_attempt_at)
    assert story.entries[-1].ends is Call.LOOKUP
    assert (operation.state, operation.remote_job_id) == (S.ACCEPTED, "job_1")


def test_absence_by_an_authoritative_look_up_allows_one_more_create(
    make_story: Callable[..., Story], say: type[Say]
) -> None:
    story = make_story(**NO_TOKEN)
    story.call(say.nothing(), 0.0)
    operation = story.call(say.answer(200, {"jobs": []}), story.operation.next_attempt_at)
    assert operation.state is S.CREATE_PENDING
    assert story.next(operation.next_attempt_at) == Send(Call.CREATE, "the create of a stored operation")


def test_absence_by_a_look_up_that_lags_proves_nothing(make_story: Callable[..., Story], say: type[Say]) -> None:
    story = make_story(**NO_TOKEN, lookup={"authoritative": False, "lag_s": 3})
    story.call(say.nothing(), 0.0)
    assert story.call(say.answer(200, {"jobs": []}), story.operation.next_attempt_at).state is S.CREATE_UNKNOWN


def test_a_stop_and_a_proved_absence_send_nothing_more(make_story: Callable[..., Story], say: type[Say]) -> None:
    story = make_story(**NO_TOKEN)
    story.call(say.nothing(), 0.0)
    story.told(Stop(who="ann", why="enough"), 0.1)
    story.call(say.answer(200, {"jobs": []}), story.operation.next_attempt_at)
    assert story.operation.state is S.HUMAN_DECISION_REQUIRED


def test_a_token_is_not_sent_once_the_provider_may_have_forgotten_it(
    make_story: Callable[..., Story], say: type[Say]
) -> None:
    story = make_story(idempotency={"key_lifetime_s": 5}, **NO_LOOKUP)
    story.call(say.nothing(), 0.0)
    assert isinstance(story.next(2.0), Send)
    story.settle(4.0)  # a call may take 1.5 s, and would arrive too late
    assert story.operation.state is S.HUMAN_DECISION_REQUIRED
    assert "lifetime" in (story.operation.explanation or "")


def test_when_the_token_is_too_old_the_look_up_is_used(make_story: Callable[..., Story], say: type[Say]) -> None:
    story = make_story(idempotency={"key_lifetime_s": 5})
    story.call(say.nothing(), 0.0)
    action = story.next(4.0)
    assert isinstance(action, Send)
    assert action.call is Call.LOOKUP


def test_a_token_that_is_said_to_be_anothers_stops_everything(story: Story, say: type[Say]) -> None:
    story.call(say.nothing(), 0.0)
    operation = story.call(say.problem(422, "idempotency-key-reused"), story.operation.next_attempt_at)
    assert operation.state is S.HUMAN_DECISION_REQUIRED
    assert story.entries[-1].evidence is Evidence.CONTRACT_VIOLATION


def test_an_old_answer_for_another_request_is_noticed(story: Story, say: type[Say]) -> None:
    operation = story.call(say.answer(202, say.job() | {"client_reference": "op-0"}), 0.0)
    assert operation.state is S.HUMAN_DECISION_REQUIRED
    assert operation.remote_job_id is None
    assert operation.unfamiliar_job_ids == ("job_1",)


def test_two_jobs_for_one_operation_are_both_kept(make_story: Callable[..., Story], say: type[Say]) -> None:
    story = make_story(**NO_TOKEN)
    story.call(say.nothing(), 0.0)
    jobs = [say.job(job_id="job_1"), say.job(job_id="job_2")]
    operation = story.call(say.answer(200, {"jobs": jobs}), story.operation.next_attempt_at)
    assert operation.state is S.HUMAN_DECISION_REQUIRED
    assert operation.unfamiliar_job_ids == ("job_1", "job_2")
    assert isinstance(story.next(100.0), Rest)


def test_a_call_that_another_worker_began_and_never_concluded_may_have_been_made(story: Story) -> None:
    begun = story.workflow.begin(story.operation, Send(Call.CREATE, ""), worker="w1", fence=1, now=0.0).operation
    found = story.workflow.interrupted(begun, actor="w2", now=5.0).operation
    assert found.state is S.CREATE_UNKNOWN
    assert found.failure is not None
    assert found.failure.error == "interrupted"
    assert found.in_flight is None


def test_the_safe_order_of_paths_is_token_then_look_up(make_workflow: Callable[..., Workflow], story: Story) -> None:
    operation = story.operation
    assert str(make_workflow().reconciling_path(operation, 0.0)).startswith("re-send")
    assert str(make_workflow(**NO_TOKEN).reconciling_path(operation, 0.0)) == "look-up"
    assert make_workflow(**NO_TOKEN, **NO_LOOKUP).reconciling_path(operation, 0.0) is None


def test_two_answers_that_named_different_jobs_are_both_kept_even_if_one_broke_off(
    story: Story, say: type[Say]
) -> None:
    broken = NoAnswer(
        error="cut",
        detail="",
        received_at=0.0,
        url="http://provider.test/v1/jobs",
        status=202,
        headers={"location": "http://provider.test/v1/jobs/job_9"},
    )
    assert story.call(broken, 0.0).state is S.CREATE_UNKNOWN
    operation = story.call(say.answer(202, say.job()), story.operation.next_attempt_at)
    assert operation.state is S.HUMAN_DECISION_REQUIRED
    assert operation.unfamiliar_job_ids == ("job_9", "job_1")
    assert operation.remote_job_id is None


def test_an_answer_that_broke_off_and_the_next_one_may_agree(story: Story, say: type[Say]) -> None:
    headers = {"location": "/v1/jobs/job_1"}
    url = "http://provider.test/v1/jobs"
    story.call(NoAnswer(error="cut", detail="", received_at=0.0, url=url, status=202, headers=headers), 0.0)
    assert story.call(say.answer(202, say.job()), story.operation.next_attempt_at).state is S.ACCEPTED


def test_what_was_ever_sent_is_not_withdrawn_even_when_it_proved_to_have_had_no_effect(
    make_story: Callable[..., Story], say: type[Say]
) -> None:
    story = make_story(**NO_TOKEN)
    story.call(say.nothing(), 0.0)
    story.call(say.answer(200, {"jobs": []}), story.operation.next_attempt_at)
    story.told(Stop(who="ann", why="enough"), 1.0)
    assert not isinstance(story.settle(1.0), Rest)
    assert story.operation.state is S.CREATE_PENDING
