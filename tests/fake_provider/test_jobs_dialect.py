"""Bad input at the provider's door: refused in words, never a traceback, and the next request is answered."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_provider.contract import Contract
from fake_provider.dialects import DIALECTS
from fake_provider.facts import JobCreated, RequestSent
from fake_provider.wire import MAX_BODY_BYTES, Request

if TYPE_CHECKING:
    from tests.fake_provider.conftest import Jobs, Play, World

JOBS = DIALECTS["jobs"]


def _create(body: bytes, **headers: str) -> Request:
    return Request(
        method="POST",
        path="/v1/jobs",
        query="",
        headers={"authorization": "Bearer x", **headers},
        body=body,
        base_url="http://provider.test",
    )


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "the body is no JSON"),
        (b"{", "the body is no JSON"),
        (b"\xff\xfe", "the body is no JSON"),
        (b"[" * 100_000, "the body is no JSON"),
        (b"[]", "the body is no JSON object"),
        (b"{}", "kind: missing"),
        (b'{"kind": 7}', "kind: not a string"),
        (b'{"kind": "x", "client_reference": {}}', "client_reference: not a string"),
        (b'{"kind": "x", "parameters": []}', "parameters: not an object"),
    ],
)
def test_a_body_that_is_no_create_is_refused_with_the_reason(play: Play, body: bytes, said: str) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        answer = await jobs.client.post("/v1/jobs", content=body, headers={"Idempotency-Key": "k"})
        assert answer.status_code == 400
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert said in answer.json()["detail"]
        assert (await jobs.create()).status_code == 202

    assert len(play(story).jobs) == 1


def test_a_body_that_is_too_large_is_refused(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        answer = await jobs.client.post("/v1/jobs", content=b" " * (MAX_BODY_BYTES + 1))
        assert answer.status_code == 413

    play(story)


@pytest.mark.parametrize(
    ("header", "token"),
    [
        ('"8e03978e-40d5-43dd-bc93-6894a57f9324"', "8e03978e-40d5-43dd-bc93-6894a57f9324"),
        ("8e03978e-40d5-43dd-bc93-6894a57f9324", "8e03978e-40d5-43dd-bc93-6894a57f9324"),
        ('"with \\"quotes\\" and \\\\"', 'with "quotes" and \\'),
        ("x" * 255, "x" * 255),
    ],
)
def test_a_key_is_read_quoted_or_bare(play: Play, header: str, token: str) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        await jobs.create(key=None, headers={"Idempotency-Key": header})

    world = play(story)
    assert world.of(RequestSent)[0].token == world.of(JobCreated)[0].token == token


@pytest.mark.parametrize("header", ['""', "x" * 256, '"open', "two words", "", '"a", "b"'])
def test_a_key_that_is_none_is_refused(play: Play, header: str) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        answer = await jobs.create(key=None, headers={"Idempotency-Key": header})
        assert answer.status_code == 400
        assert "Idempotency-Key" in answer.json()["detail"]

    play(story)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/v1", 404),
        ("GET", "/v1/jobs/", 404),
        ("GET", "/v1/jobs/no-such-job", 404),
        ("GET", "/v1/jobs/no-such-job/result", 404),
        ("GET", "/v1/jobs/a/b/c", 404),
        ("GET", "/v1/jobs/a/history", 404),
        ("DELETE", "/v1/jobs/no-such-job", 404),
        ("PUT", "/v1/jobs", 405),
        ("PATCH", "/v1/jobs/a", 405),
        ("POST", "/v1/jobs/a/result", 405),
        ("POST", "/v1/jobs/a/cancel", 405),
        ("GET", "/v1/jobs", 400),
        ("GET", "/v1/jobs?client_reference=a&client_reference=b", 400),
        ("GET", "/v1/jobs/%2e%2e%2f/result?expires=x&signature=%00", 404),
        ("GET", "/%ff%fe", 404),
    ],
)
def test_what_is_not_there_is_refused(play: Play, method: str, path: str, status: int) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        answer = await jobs.client.request(method, path)
        assert answer.status_code == status
        problem = answer.json()
        assert (problem["status"], sorted(problem)) == (status, ["detail", "status", "title", "type"])

    play(story)


def test_without_a_credential_nothing_is_done(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        job = await jobs.created()
        jobs.client.headers.pop("Authorization")
        for answer in (await jobs.create(key="2"), await jobs.status(job), await jobs.cancel(job)):
            assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "Bearer")

    world = play(story)
    assert len(world.jobs) == 1
    assert world.of(RequestSent)[-1].credential is None


@pytest.mark.parametrize(
    ("traceparent", "trace"),
    [
        ("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "4bf92f3577b34da6a3ce929d0e0e4736"),
        ("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7", None),
        ("ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", None),
        ("00-00000000000000000000000000000000-00f067aa0ba902b7-01", None),
        ("00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01", None),
        ("junk", None),
    ],
)
def test_a_trace_is_noted_if_it_is_valid_and_never_refused(play: Play, traceparent: str, trace: str | None) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        assert (await jobs.create(headers={"traceparent": traceparent})).status_code == 202

    assert play(story).of(RequestSent)[0].trace == trace


def test_history_holds_a_digest_of_the_credential_and_not_the_credential(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        await jobs.create(headers={"Authorization": "Bearer canary-5ec4e7"})

    world = play(story)
    assert "canary-5ec4e7" not in repr(world.facts)
    credential = world.of(RequestSent)[0].credential
    assert credential is not None
    assert credential.startswith("sha256:")


@given(
    method=st.sampled_from(["GET", "POST", "DELETE", "PUT", "BREW"]),
    path=st.one_of(st.text(max_size=40), st.builds("/v1/jobs/{}".format, st.text(max_size=20))),
    query=st.text(max_size=40),
    headers=st.dictionaries(
        st.sampled_from(["idempotency-key", "traceparent", "x-client-operation-id", "authorization"]),
        st.text(max_size=40),
    ),
    body=st.binary(max_size=60) | st.sampled_from([b'{"kind":"x","client_reference":"\\ud800"}', b'{"kind":1e999}']),
)
def test_reading_never_raises(method: str, path: str, query: str, headers: dict[str, str], body: bytes) -> None:
    request = Request(
        method=method, path=path, query=query, headers=headers, body=body, base_url="http://provider.test"
    )
    for contract in (Contract(), Contract.model_validate({"idempotency": {"mechanism": "body_field"}})):
        JOBS.read(request, contract)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8")),
        lambda values: st.lists(values, max_size=3),
    )
)
def test_equal_requests_are_recognised_however_they_are_written(value: Any) -> None:
    document = {"kind": "x", "parameters": {"value": value}}
    terse = _create(json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode())
    verbose = _create(json.dumps(dict(reversed(document.items())), indent=2).encode())
    assert getattr(JOBS.read(terse, Contract()), "canonical", 1) == getattr(
        JOBS.read(verbose, Contract()), "canonical", 2
    )
