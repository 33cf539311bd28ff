"""Answers that HTTP allows and clients misread."""

from __future__ import annotations

from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

import pytest

from fake_provider.facts import AnswerEnded, RequestSent

if TYPE_CHECKING:
    from tests.fake_provider.conftest import Jobs, Play, World


@pytest.mark.parametrize("status", [408, 500, 502, 503, 504])
@pytest.mark.parametrize(("point", "jobs_made"), [("received", 0), ("committed", 1)])
def test_a_server_error_comes_before_or_after_the_work(play: Play, status: int, point: str, jobs_made: int) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        answer = await jobs.create()
        assert answer.status_code == status
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert "Retry-After" not in answer.headers

    world = play(story, {"kind": "server_error", "at": f"create#1:{point}", "status": status})
    assert len(world.jobs) == jobs_made
    (ended,) = world.of(AnswerEnded)
    assert ended.from_fault
    assert ended.job is None


def test_a_server_error_may_say_when_to_come_again(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        assert (await jobs.create()).headers["Retry-After"] == "7"

    world = play(story, {"kind": "server_error", "at": "create#1:received", "retry_after_s": 7})
    assert world.of(AnswerEnded)[0].retry_after_s == 7


def test_too_many_requests_says_when_to_come_again(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        answer = await jobs.create()
        assert (answer.status_code, answer.headers["Retry-After"]) == (429, "2")

    world = play(story, {"kind": "too_many_requests", "at": "create#1:received"})
    assert world.of(AnswerEnded)[0].problem == "too_many_requests"


def test_a_conflict_claims_that_an_earlier_request_is_under_way(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        answer = await jobs.create()
        assert answer.status_code == 409
        assert answer.json()["type"].endswith("/request-in-progress")

    play(story, {"kind": "conflict_in_progress", "at": "create#1:committed"})


@pytest.mark.parametrize(
    ("form", "text", "asks_for"),
    [
        ("seconds", "3", 3),
        ("negative", "-3", None),
        ("fraction", "3.5", None),
        ("junk", "soon", None),
        ("huge", "10000000000", 10**10),
    ],
)
def test_a_retry_after_of_each_form(play: Play, form: str, text: str, asks_for: float | None) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        assert (await jobs.create()).headers["Retry-After"] == text

    world = play(story, {"kind": "retry_after", "at": "create#1:committed", "form": form})
    assert world.of(AnswerEnded)[0].retry_after_s == asks_for


@pytest.mark.parametrize(("form", "from_now", "asks_for"), [("http_date", 3, 3), ("past_date", -86_400, 0)])
def test_a_retry_after_as_a_date(play: Play, form: str, from_now: float, asks_for: float) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        text = (await jobs.create()).headers["Retry-After"]
        assert parsedate_to_datetime(text).timestamp() == world.clock.now() + from_now

    world = play(story, {"kind": "retry_after", "at": "create#1:committed", "form": form})
    assert world.of(AnswerEnded)[0].retry_after_s == asks_for


def test_a_page_in_html_comes_with_200(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        job = await jobs.created()
        answer = await jobs.status(job)
        assert answer.status_code == 200
        assert answer.headers["Content-Type"].startswith("text/html")
        assert (await jobs.status(job)).json()["id"] == job

    world = play(story, {"kind": "html_body", "at": "status#1:received"})
    assert world.of(AnswerEnded)[1].remote_state is None


def test_invalid_json_has_the_length_it_announces(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        answer = await jobs.status(await jobs.created())
        assert int(answer.headers["Content-Length"]) == len(answer.content)
        with pytest.raises(ValueError, match=r"Unterminated|Expecting"):
            answer.json()

    world = play(story, {"kind": "invalid_json", "at": "status#1:committed"})
    assert world.of(AnswerEnded)[1].remote_state is None


def test_a_wrong_content_type_is_all_that_is_wrong(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        answer = await jobs.status(await jobs.created())
        assert answer.headers["Content-Type"] == "text/plain"
        assert answer.json()["status"] == "running"

    play(story, {"kind": "wrong_content_type", "at": "status#1:committed"})


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_to_another_origin(play: Play, status: int) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        answer = await jobs.create()
        assert (answer.status_code, answer.headers["Location"]) == (status, "http://elsewhere.test/v1/jobs")

    play(story, {"kind": "redirect", "at": "create#1:received", "status": status})


def test_a_redirect_within_the_origin_can_be_followed(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        job = await jobs.created()
        moved = await jobs.status(job)
        followed = await jobs.client.get(moved.headers["Location"])
        assert followed.json()["id"] == job

    play(story, {"kind": "redirect", "at": "status#1:received", "to": "same_origin"})


def test_what_a_client_sends_elsewhere_is_seen(play: Play) -> None:
    """So that a credential which left its origin can be proved."""

    async def story(world: World, jobs: Jobs) -> None:
        answer = await jobs.client.get("http://elsewhere.test/v1/jobs/job_1")
        assert answer.status_code == 404

    (sent,) = play(story).of(RequestSent)
    assert sent.origin == "http://elsewhere.test"
    assert sent.credential is not None
    assert sent.endpoint == "other"


def test_no_header_name_or_value_is_lost_on_the_way(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        headers: Any = [("Idempotency-Key", "a"), ("Idempotency-Key", "b")]
        answer = await jobs.client.post("/v1/jobs", json={"kind": "x"}, headers=headers)
        assert answer.status_code == 400, "two keys are not one"

    play(story)
