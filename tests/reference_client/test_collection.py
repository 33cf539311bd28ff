"""Collecting: retrieved, checked against all that was stated, and kept whatever the verdict (W7)."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest

from reference_client.lifecycle import LocalState
from reference_client.operation import Call, Reconcile
from reference_client.workflow import Rest, Send

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.reference_client.conftest import Say, Story

S = LocalState
BODY = json.dumps(
    {"client_reference": "op-1", "records": [{"id": "r1", "status": "ok"}, {"id": "r2", "status": "failed"}]}
).encode()
STATED: dict[str, Any] = {
    "href": "http://provider.test/v1/jobs/job_1/result",
    "content_type": "application/json",
    "size": len(BODY),
    "sha256": hashlib.sha256(BODY).hexdigest(),
    "records": 2,
    "failed": 1,
}


def done(story: Story, say: type[Say], **stated: Any) -> Story:
    story.accepted()
    story.call(say.status("succeeded", result=STATED | stated), 1.0)
    return story


def test_a_result_that_is_what_was_stated_succeeds_with_its_counts(story: Story, say: type[Say]) -> None:
    operation = done(story, say).call(say.answer(200, BODY), 1.0)
    assert operation.state is S.SUCCEEDED
    assert operation.collected is not None
    assert operation.collected.sha256 == STATED["sha256"]
    assert (operation.collected.records, operation.collected.failed_items) == (2, 1)
    assert operation.collected.failed_references == ("r2",)


@pytest.mark.parametrize(
    ("stated", "complaint"),
    [
        ({"size": 3}, "stated 3"),
        ({"sha256": "0" * 64}, "SHA-256"),
        ({"records": 3}, "2 records, stated 3"),
        ({"failed": 0}, "1 failed items, stated 0"),
        ({"content_type": "text/csv"}, "stated text/csv"),
    ],
)
def test_a_result_that_is_not_what_was_stated_is_kept_and_not_believed(
    story: Story, say: type[Say], stated: dict[str, Any], complaint: str
) -> None:
    operation = done(story, say, **stated).call(say.answer(200, BODY), 1.0)
    assert operation.state is S.RESULT_VALIDATION_FAILED
    assert complaint in (operation.explanation or "")
    assert operation.collected is not None


def test_the_digest_in_the_answer_is_compared_too(story: Story, say: type[Say]) -> None:
    answer = say.answer(200, BODY, content_digest=f"sha-256=:{'A' * 43}=:")
    assert done(story, say).call(answer, 1.0).state is S.RESULT_VALIDATION_FAILED


def test_a_result_of_which_nothing_was_stated_must_still_read_as_one(story: Story, say: type[Say]) -> None:
    story.accepted()
    story.call(say.status("succeeded"), 1.0)
    assert story.call(say.answer(200, b'{"error":"none"}'), 1.0).state is S.RESULT_VALIDATION_FAILED


def test_success_is_not_recorded_before_the_result_is_there(story: Story, say: type[Say]) -> None:
    done(story, say)
    assert story.operation.state is S.RESULT_COLLECTING
    for answer in (say.nothing(), say.problem(503), say.problem(409, "not-finished"), say.problem(401)):
        assert story.call(answer, story.operation.next_attempt_at).state is S.RESULT_COLLECTING
    assert story.call(say.answer(200, BODY), story.operation.next_attempt_at).state is S.SUCCEEDED


def test_a_link_that_expired_is_read_again_from_the_job(story: Story, say: type[Say]) -> None:
    done(story, say, href="http://provider.test/signed?a=1").call(say.problem(403), 1.0)
    fresh = say.status("succeeded", result=STATED | {"href": "http://provider.test/signed?a=2"})
    story.call(fresh, story.operation.next_attempt_at)
    assert story.entries[-1].ends is Call.STATUS
    story.settle(story.operation.next_attempt_at)
    assert story.workflow.adapter.result(story.operation).path == "/signed?a=2"
    assert story.call(say.answer(200, BODY), story.operation.next_attempt_at).state is S.SUCCEEDED


def test_a_link_that_stays_expired_ends_as_unavailable(story: Story, say: type[Say]) -> None:
    done(story, say)
    for _ in range(20):
        if story.operation.state is not S.RESULT_COLLECTING:
            break
        action = story.next(story.operation.next_attempt_at)
        assert isinstance(action, Send)
        again = say.status("succeeded", result=STATED)
        story.call(say.problem(410) if action.call is Call.RESULT else again, story.operation.next_attempt_at)
    assert story.operation.state is S.RESULT_UNAVAILABLE
    assert story.operation.create_attempts == 1


def test_a_one_time_result_that_is_gone_is_gone(make_story: Callable[..., Story], say: type[Say]) -> None:
    operation = done(make_story(result={"kind": "one_time"}), say).call(say.problem(410), 1.0)
    assert operation.state is S.RESULT_UNAVAILABLE
    assert isinstance(operation.explanation, str)


def test_a_result_that_never_comes_ends_as_unavailable(story: Story, say: type[Say]) -> None:
    done(story, say).call(say.nothing(), 1.0)
    assert isinstance(story.settle(20.0), Rest)
    assert story.operation.state is S.RESULT_UNAVAILABLE
    assert "timeout" in (story.operation.explanation or "")


def test_an_operator_may_have_it_collected_again(story: Story, say: type[Say]) -> None:
    done(story, say, size=3).call(say.answer(200, BODY), 1.0)
    story.told(Reconcile(who="ann", why="the provider mended it"), 50.0)
    story.call(say.status("succeeded", result=STATED), 50.0)
    operation = story.call(say.answer(200, BODY), story.operation.next_attempt_at)
    assert (operation.state, operation.explanation) == (S.SUCCEEDED, None)


def test_an_inline_result_is_collected_as_an_action_of_its_own(story: Story, say: type[Say]) -> None:
    value = {"client_reference": "op-1", "records": [{"id": "r1", "status": "ok"}]}
    story.accepted()
    story.call(say.status("succeeded", result={"inline": value, "content_type": "application/json"}), 1.0)
    assert story.entries[-1].after is S.RESULT_COLLECTING
    assert isinstance(story.settle(1.0), Rest)
    assert story.operation.state is S.SUCCEEDED
    assert story.operation.result is not None
    assert story.operation.result.inline is None, "the bytes lie beside the record"


def test_an_old_answer_while_collecting_moves_nothing_back(story: Story, say: type[Say]) -> None:
    done(story, say).call(say.problem(404), 1.0)
    assert story.call(say.status("running"), story.operation.next_attempt_at).state is S.RESULT_COLLECTING


def test_a_result_behind_a_redirect_of_the_same_origin_is_fetched_there(story: Story, say: type[Say]) -> None:
    done(story, say).call(say.answer(302, location="/store/1"), 1.0)
    story.settle(story.operation.next_attempt_at)
    assert story.workflow.adapter.result(story.operation).path == "/store/1"


def test_a_result_behind_a_redirect_to_another_origin_is_not_followed(story: Story, say: type[Say]) -> None:
    done(story, say).call(say.answer(302, location="http://elsewhere.test/store/1"), 1.0)
    assert story.operation.state is S.RESULT_COLLECTING
    assert story.workflow.adapter.result(story.operation).path == "/v1/jobs/job_1/result"


def test_a_large_result_is_named_for_its_digest_and_not_kept_in_the_record(
    make_story: Callable[..., Story], say: type[Say]
) -> None:
    story = make_story()
    story.workflow.inline_limit_bytes = 10
    operation = done(story, say).call(say.answer(200, BODY), 1.0)
    assert operation.collected is not None
    assert operation.collected.location == f"file:{STATED['sha256']}"


def test_no_payload_is_in_the_history(story: Story, say: type[Say]) -> None:
    done(story, say).call(say.answer(200, BODY), 1.0)
    assert "client_reference" not in repr(story.entries)
