"""What is wrong with a result, though the job succeeded."""

from __future__ import annotations

import asyncio
import hashlib
from typing import TYPE_CHECKING, Any

import pytest

from fake_provider.facts import JobMoved, RequestSent, ResultRead

if TYPE_CHECKING:
    import httpx2

    from tests.fake_provider.conftest import Jobs, Play, World


class Collected:
    """A result as one client got it, and what the job said of it."""

    def __init__(self) -> None:
        self.stated: dict[str, Any] = {}
        self.answers: list[httpx2.Response] = []

    async def __call__(self, world: World, jobs: Jobs) -> None:
        job = await jobs.created()
        await asyncio.sleep(3)
        self.stated = (await jobs.status(job)).json()["result"]
        if "href" in self.stated:
            self.answers.append(await jobs.client.get(self.stated["href"]))
            self.answers.append(await jobs.client.get(self.stated["href"]))


@pytest.fixture
def collected() -> Collected:
    return Collected()


def _sha256(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def test_an_unharmed_result_is_as_the_job_states(play: Play, collected: Collected) -> None:
    """The other tests here would prove nothing if it were not."""
    world = play(collected)
    body = collected.answers[0].content
    assert collected.stated["sha256"] == _sha256(body)
    assert collected.stated["size"] == len(body)
    assert collected.stated["records"] == len(collected.answers[0].json()["records"]) == 3
    assert world.of(ResultRead)[0].sha256 == world.of(JobMoved)[-1].result_sha256 == _sha256(body)


@pytest.mark.parametrize(("kind", "problem"), [("result_expired", "link-expired"), ("result_consumed", "result-gone")])
def test_a_result_is_gone(play: Play, collected: Collected, kind: str, problem: str) -> None:
    world = play(collected, {"kind": kind, "at": "result#1:received"})
    assert collected.answers[0].status_code == 410
    assert collected.answers[0].json()["type"].endswith(problem)
    assert collected.answers[1].status_code == 200
    assert [read.time for read in world.of(ResultRead)] == [1]


def test_a_checksum_is_wrong(play: Play, collected: Collected) -> None:
    world = play(collected, {"kind": "result_wrong_checksum", "at": "result#1:committed"})
    harmed, whole = collected.answers
    assert len(harmed.content) == len(whole.content)
    assert _sha256(harmed.content) != collected.stated["sha256"] == _sha256(whole.content)
    assert harmed.headers["Content-Digest"] == whole.headers["Content-Digest"]
    assert world.of(ResultRead)[0].sha256 == _sha256(harmed.content)


def test_a_result_is_cut_short_in_a_whole_answer(play: Play, collected: Collected) -> None:
    play(collected, {"kind": "result_cut_short", "at": "result#1:committed"})
    harmed, whole = collected.answers
    assert int(harmed.headers["Content-Length"]) == len(harmed.content) < len(whole.content)


def test_a_row_is_an_error(play: Play, collected: Collected) -> None:
    play(collected, {"kind": "result_error_row", "at": "result#1:committed", "message": "oops"})
    assert collected.answers[0].json()["records"][-1] == {"error": "oops"}


def test_records_are_missing(play: Play, collected: Collected) -> None:
    play(collected, {"kind": "result_records_missing", "at": "result#1:committed", "records": 2})
    assert len(collected.answers[0].json()["records"]) == collected.stated["records"] - 2


def test_items_failed_that_the_job_does_not_count(play: Play, collected: Collected) -> None:
    play(collected, {"kind": "result_failed_items", "at": "result#1:committed", "items": 2})
    states = [row["status"] for row in collected.answers[0].json()["records"]]
    assert states == ["failed", "failed", "ok"]
    assert collected.stated["failed"] == 0


def test_a_result_is_of_the_wrong_type(play: Play, collected: Collected) -> None:
    play(collected, {"kind": "result_wrong_type", "at": "result#1:committed"})
    assert collected.answers[0].headers["Content-Type"] == "text/csv"


def test_a_result_is_behind_a_redirect_to_a_store_that_asks_for_no_credential(play: Play, collected: Collected) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        await collected(world, jobs)
        location = collected.answers[0].headers["Location"]
        assert location.startswith("http://elsewhere.test/")
        jobs.client.headers.pop("Authorization")
        assert (await jobs.client.get(location)).content == collected.answers[1].content

    world = play(story, {"kind": "result_behind_redirect", "at": "result#1:received"})
    assert collected.answers[0].status_code == 302
    assert world.of(RequestSent)[-1].origin == "http://elsewhere.test"


@pytest.mark.parametrize("kind", ["result_wrong_checksum", "result_error_row", "result_failed_items"])
def test_a_result_inside_the_job_is_harmed_there(play: Play, collected: Collected, kind: str) -> None:
    world = play(collected, {"kind": kind, "at": "status#1:committed"}, contract={"result": {"kind": "inline"}})
    assert world.struck == [kind]
    assert "inline" in collected.stated
    assert collected.stated["sha256"] == world.of(JobMoved)[-1].result_sha256


@pytest.mark.parametrize("kind", ["result_expired", "result_consumed", "result_behind_redirect"])
def test_a_result_that_is_not_there_yet_cannot_be_harmed(play: Play, kind: str) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        assert (await jobs.result(await jobs.created())).status_code == 409

    assert play(story, {"kind": kind, "at": "result#1:received"}).struck == []
