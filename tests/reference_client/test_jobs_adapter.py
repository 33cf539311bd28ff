"""The jobs wire format: requests as documented, answers read for what they say and nothing more."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_client.adapters import protocol as p
from reference_client.adapters.jobs import JobsAdapter
from reference_client.adapters.protocol import path_at_origin
from reference_client.config import ConfigError, Terms

if TYPE_CHECKING:
    from collections.abc import Callable

    from reference_client.operation import Operation
    from reference_client.workflow import Workflow
    from tests.reference_client.conftest import Story


def adapter(**contract: Any) -> Any:
    """An adapter. Not typed, so that a test may say at once what it expects a meaning to hold."""
    return JobsAdapter(Terms.read(contract))


def ans(status: int, body: Any = None, **headers: str) -> p.Answer:
    kind = "application/json" if status < 400 else "application/problem+json"
    return p.Answer(
        url="http://provider.test/v1/jobs",
        status=status,
        headers={"content-type": kind} | {name.replace("_", "-"): value for name, value in headers.items()},
        body=body if isinstance(body, bytes) else json.dumps(body).encode(),
        received_at=0.0,
    )


def prob(status: int, name: str) -> p.Answer:
    return ans(status, {"type": f"https://jobsworth.test/problems/{name}", "detail": "because"})


JOB = {"id": "job_1", "status": "queued", "client_reference": "op-1"}


def test_a_state_is_read_by_the_words_of_the_contract_and_any_other_word_is_no_end() -> None:
    speaks = adapter(status={"words": {"succeeded": "done", "cancelled": "Canceled"}})
    read = {
        word: speaks.read_status(ans(200, {**JOB, "status": word})).phase for word in ("done", "Canceled", "failed")
    }
    assert read == {"done": p.Phase.SUCCEEDED, "Canceled": p.Phase.CANCELLED, "failed": p.Phase.FAILED}
    for word in ("succeeded", "cancelled", "canceled", "DONE"):
        assert speaks.read_status(ans(200, {**JOB, "status": word})).phase is p.Phase.UNKNOWN
    assert speaks.read_event(
        json.dumps({"type": "job.succeeded", "data": {**JOB, "status": "done"}}).encode()
    ).job.phase
    with pytest.raises(ConfigError, match="'failed' stands for several states"):
        adapter(status={"words": {"cancelled": "failed"}})


# requests


def test_a_create_carries_the_stored_bytes_and_the_token_as_a_structured_string(story: Story) -> None:
    request = adapter().create(story.operation)
    assert (request.method, request.path) == ("POST", "/v1/jobs")
    assert request.body == story.operation.request_body
    assert request.headers["idempotency-key"] == f'"{story.operation.idempotency_token}"'


def test_a_token_that_belongs_into_the_body_is_there_and_only_there(make_story: Callable[..., Story]) -> None:
    contract = {"idempotency": {"mechanism": "body_field"}}
    operation = make_story(**contract).operation
    request = adapter(**contract).create(operation)
    assert json.loads(request.body)["request_id"] == operation.idempotency_token
    assert "idempotency-key" not in request.headers


def test_without_a_mechanism_no_token_is_sent(make_story: Callable[..., Story]) -> None:
    contract = {"idempotency": {"mechanism": "none"}}
    operation = make_story(**contract).operation
    request = adapter(**contract).create(operation)
    assert operation.idempotency_token not in f"{request.headers}{request.body!r}"


@pytest.mark.parametrize(
    ("by", "query"),
    [("by_client_reference", "client_reference=op-1"), ("by_operation_id", "operation_id=op-1")],
)
def test_a_look_up_asks_by_what_the_contract_offers(story: Story, by: str, query: str) -> None:
    assert adapter(lookup={"by": by}).lookup(story.operation).path == f"/v1/jobs?{query}"


def test_a_look_up_of_recent_creates_asks_by_the_token(story: Story) -> None:
    path = adapter(lookup={"by": "recent_by_request_id"}).lookup(story.operation).path
    assert path == f"/v1/jobs?request_id={story.operation.idempotency_token}"


def test_a_base_url_with_a_path_keeps_it(make_workflow: Callable[..., Workflow]) -> None:
    step = make_workflow().open("op-1", {}, target="https://host.test/api/", authorised_by="ann", actor="w1", now=0.0)
    assert adapter().create(step.operation).path == "/api/v1/jobs"


def test_a_request_is_sent_in_one_canonical_form_whatever_the_order_of_its_keys() -> None:
    one, _ = adapter().prepare("op-1", {"b": 1, "a": [1, 2]})
    other, _ = adapter().prepare("op-1", {"a": [1, 2], "b": 1})
    assert one == other == b'{"a":[1,2],"b":1,"client_reference":"op-1"}'


def test_the_marker_that_was_given_is_kept() -> None:
    body, reference = adapter().prepare("op-1", {"client_reference": "mine"})
    assert reference == "mine"
    assert json.loads(body) == {"client_reference": "mine"}


@pytest.mark.parametrize("reference", ["", None, 7])
def test_a_marker_that_is_none_is_refused(reference: Any) -> None:
    with pytest.raises(p.RequestError, match="client_reference"):
        adapter().prepare("op-1", {"client_reference": reference})


def test_a_request_that_brings_its_own_token_is_refused() -> None:
    with pytest.raises(p.RequestError, match="request_id"):
        adapter(idempotency={"mechanism": "body_field"}).prepare("op-1", {"request_id": "x"})


# answers to a create


@pytest.mark.parametrize("status", [200, 201, 202])
def test_an_answer_that_names_a_job_is_an_accept(status: int) -> None:
    meaning = adapter().read_create(ans(status, JOB, location="http://provider.test/v1/jobs/job_1"))
    assert isinstance(meaning, p.Accepted)
    assert (meaning.job.job_id, meaning.status_path) == ("job_1", "/v1/jobs/job_1")


def test_a_finished_job_with_its_result_inline_is_a_synchronous_success() -> None:
    body = JOB | {"status": "succeeded", "result": {"inline": {"records": []}}}
    assert isinstance(adapter().read_create(ans(200, body)), p.Completed)
    assert isinstance(adapter().read_create(ans(202, body)), p.Accepted)
    assert isinstance(adapter().read_create(ans(200, JOB | {"status": "succeeded"})), p.Accepted)


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 301, 307, 418, 100])
def test_an_answer_that_does_not_say_is_ambiguous(status: int) -> None:
    assert isinstance(adapter().read_create(prob(status, "whatever")), p.Ambiguous)


@pytest.mark.parametrize(
    "answer",
    [
        ans(202, b"<html>", content_type="text/html"),
        ans(202, b"{"),
        ans(202, []),
        ans(202, {"status": "queued"}),
        ans(202, {"id": 7, "status": "queued"}),
        ans(202, {"id": "", "status": "queued"}),
        ans(202, JOB, content_type="text/plain"),
        ans(202, b"[" * 100_000),
    ],
)
def test_an_accept_that_cannot_be_read_is_ambiguous(answer: p.Answer) -> None:
    assert isinstance(adapter().read_create(answer), p.Ambiguous)


def test_a_refusal_says_whether_it_is_about_the_request() -> None:
    about_it = adapter().read_create(prob(400, "invalid-request"))
    about_something_else = adapter().read_create(prob(401, "unauthorized"))
    assert about_it == p.Rejected("invalid_request", "400 because", judges_request=True)
    assert about_something_else == p.Rejected("unauthorized", "401 because", judges_request=False)


@pytest.mark.parametrize(
    "answer",
    [
        ans(422, {"detail": "no"}),
        ans(422, b"{"),
        ans(422, {"type": "x/idempotency-key-reused"}, content_type="text/plain"),
    ],
)
def test_a_422_that_does_not_say_why_is_not_taken_to_be_about_the_request(answer: p.Answer) -> None:
    """It may say that the token is taken, by an attempt whose answer was lost."""
    meaning = adapter().read_create(answer)
    assert isinstance(meaning, p.Rejected)
    assert not meaning.judges_request


def test_a_token_that_is_said_to_be_anothers_is_a_conflict() -> None:
    assert isinstance(adapter().read_create(prob(422, "idempotency-key-reused")), p.Conflict)
    assert isinstance(adapter().read_create(prob(422, "unprocessable")), p.Rejected)


def test_a_broken_answer_may_still_have_named_the_job_in_its_headers() -> None:
    broken = p.NoAnswer(
        error="cut",
        detail="",
        received_at=0.0,
        url="http://provider.test/v1/jobs",
        status=202,
        headers={"location": "http://provider.test/v1/jobs/job_%31"},
    )
    assert adapter().job_named_in_passing(broken) == "job_1"


# other answers


def test_a_look_up_finds_finds_nothing_or_tells_nothing() -> None:
    read = adapter().read_lookup
    found = read(ans(200, {"jobs": [JOB]}))
    assert isinstance(found, p.Found)
    assert [job.job_id for job in found.jobs] == ["job_1"]
    assert isinstance(read(ans(200, {"jobs": []})), p.Absent)
    for answer in (prob(404, "not-offered"), ans(200, {}), ans(200, {"jobs": [1]}), ans(200, b""), prob(500, "x")):
        assert isinstance(read(answer), p.Unusable)


def test_a_status_is_its_state_and_an_unknown_word_steers_nothing() -> None:
    read = adapter().read_status
    assert read(ans(200, JOB | {"status": "running", "progress": 100})).phase is p.Phase.ACTIVE
    assert read(ans(200, JOB | {"status": "succeeded"})).phase is p.Phase.SUCCEEDED
    assert read(ans(200, JOB | {"status": "SUCCEEDED"})).phase is p.Phase.UNKNOWN
    assert read(ans(200, JOB | {"status": "archived"})).phase is p.Phase.UNKNOWN


@pytest.mark.parametrize("progress", ["100", 101, -1, True, 5.5, None])
def test_progress_that_is_none_is_left_out(progress: Any) -> None:
    assert adapter().read_status(ans(200, JOB | {"progress": progress})).progress is None


def test_a_status_read_may_find_nothing_be_sent_elsewhere_or_fail() -> None:
    read = adapter().read_status
    assert isinstance(read(prob(404, "not-found")), p.Missing)
    assert isinstance(read(prob(503, "x")), p.Unusable)
    assert isinstance(read(ans(200, b"<html>", content_type="text/html")), p.Unusable)
    assert read(ans(301, location="/v2/jobs/job_1")).path == "/v2/jobs/job_1"
    assert read(ans(302, location="https://elsewhere.test/v1/jobs/job_1")).path is None


def test_a_cancel_is_called_as_the_contract_says(story: Story) -> None:
    known = msgspec.structs.replace(story.operation, remote_job_id="job_1")
    assert adapter().cancel(known) == p.Request(method="DELETE", path="/v1/jobs/job_1")
    by_post = adapter(cancel={"method": "post"}).cancel(known)
    assert by_post == p.Request(method="POST", path="/v1/jobs/job_1/cancel")


def test_a_cancel_is_taken_refused_or_left_open() -> None:
    read = adapter().read_cancel
    assert isinstance(read(ans(202, JOB | {"status": "cancelling"})), p.CancelTaken)
    assert isinstance(read(ans(200, JOB | {"status": "cancelled"})), p.CancelTaken)
    assert read(prob(409, "job-finished")).error == "finished"
    assert read(prob(404, "not-found")).error == "not_found"
    assert read(prob(405, "method-not-allowed")).error == "unsupported"
    for status in (409, 429, 500, 503, 401):
        assert isinstance(read(prob(status, "x")), p.Unusable)


def test_partial_effects_are_read_where_they_are_told() -> None:
    body = JOB | {"status": "cancelled", "partial_effects": ["half a file"]}
    assert adapter().read_cancel(ans(200, body)).partial_effects == ("half a file",)


def test_a_result_is_read_with_the_digest_that_came_with_it() -> None:
    body = b'{"records":[]}'
    digest = base64.b64encode(hashlib.sha256(body).digest()).decode()
    read = adapter().read_result(ans(200, body, content_digest=f"sha-256=:{digest}:"))
    assert read == p.Retrieved(body, "application/json", hashlib.sha256(body).hexdigest())


def test_a_result_may_be_not_yet_there_gone_or_elsewhere() -> None:
    read = adapter().read_result
    assert isinstance(read(prob(409, "not-finished")), p.NotYet)
    assert isinstance(read(prob(410, "result-gone")), p.Gone)
    assert isinstance(read(prob(403, "link-expired")), p.Gone)
    assert isinstance(read(prob(500, "x")), p.Unusable)
    assert read(ans(302, location="http://elsewhere.test/x")).path is None


def test_addresses_of_another_origin_are_not_used() -> None:
    body = JOB | {"status": "succeeded", "result": {"href": "https://elsewhere.test/result", "size": 3}}
    report = adapter().read_status(ans(200, body))
    assert report.result.path is None
    assert report.result.size_bytes == 3
    assert "another origin" in report.notes[0]


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("/x?y=1", "/x?y=1"),
        ("x", "/v1/x"),
        ("http://provider.test", "/"),
        ("http://provider.test:80/x", "/x"),
        ("HTTP://PROVIDER.TEST/x", "/x"),
        ("https://provider.test/x", None),
        ("http://provider.test:81/x", None),
        ("http://provider.test.evil/x", None),
        ("http://provider.test@evil.test/x", None),
        ("http://user:pass@provider.test/x", None),
        ("//evil.test/x", None),
        ("javascript:alert(1)", None),
        ("http://[::1/x", None),
        ("http://provider.test:port/x", None),
    ],
)
def test_only_the_path_of_an_address_of_the_same_origin_is_kept(url: str, path: str | None) -> None:
    assert path_at_origin("http://provider.test/v1/jobs", url) == path


# results


def valid(operation: Operation, **changes: Any) -> tuple[int | None, tuple[str, ...], tuple[str, ...]]:
    body = {"client_reference": "op-1", "records": [{"id": "r1", "status": "ok"}, {"id": "r2", "status": "failed"}]}
    counted: tuple[int | None, tuple[str, ...], tuple[str, ...]] = adapter().validate_result(
        operation, json.dumps(body | changes).encode()
    )
    return counted


def test_records_are_counted_and_failed_ones_named(story: Story) -> None:
    assert valid(story.operation) == (2, ("r2",), ())


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"client_reference": "op-2"}, "another client_reference"),
        ({"records": [{"id": "r1", "status": "ok"}] * 2}, "comes twice"),
        ({"records": [{"status": "ok"}]}, "has no id"),
        ({"records": ["r1"]}, "has no id"),
        ({"records": None}, "no list of records"),
    ],
)
def test_a_result_that_is_wrong_in_itself_is_found(story: Story, changes: dict[str, Any], complaint: str) -> None:
    _, _, problems = valid(story.operation, **changes)
    assert complaint in problems[0]


def test_a_result_that_is_no_json_is_found(story: Story) -> None:
    for body in (b"<html>", b"", b"[1", b"[" * 100_000, b"\xff"):
        records, _, problems = adapter().validate_result(story.operation, body)
        assert records is None
        assert problems


# whatever comes

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda children: (
        st.lists(children, max_size=3)
        | st.dictionaries(
            st.sampled_from(["id", "status", "result", "jobs", "href", "inline", "records", "error", "type", "data"])
            | st.text(max_size=5),
            children,
            max_size=4,
        )
    ),
    max_leaves=12,
)
BODIES = st.binary(max_size=80) | JSON.map(lambda value: json.dumps(value).encode())
ANSWERS = st.builds(
    p.Answer,
    url=st.just("http://provider.test/v1/jobs"),
    status=st.integers(100, 599),
    headers=st.dictionaries(
        st.sampled_from(["content-type", "location", "retry-after", "content-digest", "idempotency-replayed", "date"]),
        st.sampled_from(["application/json", "application/problem+json", "text/html"]) | st.text(max_size=30),
        max_size=6,
    ),
    body=BODIES,
    received_at=st.just(0.0),
)
SAYS_SUCCEEDED = (p.Phase.SUCCEEDED, p.Phase.FAILED, p.Phase.CANCELLED)


@given(ANSWERS)
def test_no_answer_makes_a_reader_fail_or_say_more_than_it_does(answer: p.Answer) -> None:
    reads = adapter()
    status = reads.read_status(answer)
    if isinstance(status, p.JobReport) and status.phase in SAYS_SUCCEEDED:
        assert answer.status == 200
        assert json.loads(answer.body)["status"] == status.phase
    create = reads.read_create(answer)
    assert not isinstance(create, p.Rejected) or 400 <= answer.status < 500
    assert not isinstance(create, p.Accepted | p.Completed) or 200 <= answer.status < 300
    assert not isinstance(reads.read_lookup(answer), p.Absent) or json.loads(answer.body)["jobs"] == []
    assert not isinstance(reads.read_cancel(answer), p.CancelTaken) or 200 <= answer.status < 300
    assert not isinstance(reads.read_result(answer), p.Retrieved) or answer.status == 200


@given(BODIES)
def test_no_event_body_makes_the_reader_fail(body: bytes) -> None:
    event = adapter().read_event(body)
    assert event is None or event.job.job_id
