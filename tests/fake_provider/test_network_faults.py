"""Each network fault leaves the client and the provider as a network would."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import httpx2
import pytest

from fake_provider.facts import AnswerEnded, Fate, RequestSent

if TYPE_CHECKING:
    from tests.fake_provider.conftest import Jobs, Play, World


@pytest.mark.parametrize("point", ["before_receipt", "received"])
def test_a_lost_request_does_nothing_and_the_client_waits_for_its_own_time_out(play: Play, point: str) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        with pytest.raises(httpx2.ReadTimeout):
            await jobs.create()
        assert world.elapsed == 1

    world = play(story, {"kind": "request_lost", "at": f"create#1:{point}"})
    assert world.jobs == []
    (ended,) = world.of(AnswerEnded)
    assert (ended.fate, ended.status) == (Fate.LOST, None)


def test_a_lost_answer_leaves_a_job_that_the_same_key_brings_back(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        with pytest.raises(httpx2.ReadTimeout):
            await jobs.create()
        assert world.elapsed == 1
        again = await jobs.create()
        assert again.json()["id"] == world.jobs[0]
        assert again.headers["Idempotency-Replayed"] == "true"

    world = play(story, {"kind": "answer_lost", "at": "create#1:committed"})
    assert len(world.jobs) == 1
    assert world.fates == ["lost", "delivered"]


def test_a_client_without_a_time_out_waits_for_ever_for_a_lost_answer(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(jobs.create(), 3_600)

    play(story, {"kind": "answer_lost", "at": "create#1:committed"}, timeout=None)


@pytest.mark.parametrize(
    ("point", "jobs_made"), [("before_receipt", 0), ("received", 0), ("committed", 1), ("answering", 1)]
)
def test_a_reset_connection_is_a_read_error_at_once(play: Play, point: str, jobs_made: int) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        with pytest.raises(httpx2.ReadError):
            await jobs.create()
        assert world.elapsed == 0

    world = play(story, {"kind": "connection_reset", "at": f"create#1:{point}"})
    assert len(world.jobs) == jobs_made
    assert world.fates == ["reset"]


def test_a_create_that_was_reset_before_it_was_done_gives_its_key_back(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        with pytest.raises(httpx2.ReadError):
            await jobs.create()
        assert (await jobs.create()).status_code == 202

    play(story, {"kind": "connection_reset", "at": "create#1:received"})


def test_a_cut_answer_shows_its_head_and_then_breaks_off(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        async with jobs.client.stream("POST", "/v1/jobs", json={"kind": "x"}, headers={"Idempotency-Key": "k"}) as head:
            assert head.status_code == 202
            with pytest.raises(httpx2.RemoteProtocolError, match="without sending complete message body"):
                await head.aread()

    world = play(story, {"kind": "answer_cut", "at": "create#1:answering"})
    assert world.fates == ["cut"]


@pytest.mark.parametrize("point", ["received", "committed", "answering"])
def test_a_slow_answer_within_the_time_out_arrives(play: Play, point: str) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        assert (await jobs.create()).status_code == 202
        assert world.elapsed == 0.5

    play(story, {"kind": "slow_answer", "at": f"create#1:{point}", "seconds": 0.5})


def test_a_slow_answer_beyond_the_time_out_comes_to_nobody_and_the_work_is_done(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        with pytest.raises(httpx2.ReadTimeout):
            await jobs.create()
        assert world.elapsed == 1
        assert world.jobs == []
        await asyncio.sleep(2)

    world = play(story, {"kind": "slow_answer", "at": "create#1:received", "seconds": 2})
    assert len(world.jobs) == 1
    assert world.fates == ["abandoned"]
    assert world.times[-1] == 2


def test_a_client_that_gives_up_is_noticed(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(jobs.create(), 0.25)
        await asyncio.sleep(1)

    world = play(story, {"kind": "slow_answer", "at": "create#1:committed", "seconds": 0.5})
    assert world.fates == ["abandoned"]


@pytest.mark.parametrize("point", ["before_receipt", "received", "committed", "delivered"])
def test_a_duplicated_request_reaches_the_provider_twice(play: Play, point: str) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        assert (await jobs.create()).is_success

    world = play(story, {"kind": "request_duplicated", "at": f"create#1:{point}"})
    first, copy = world.of(RequestSent)
    assert copy.copy_of == first.exchange
    assert (copy.token, copy.fingerprint) == (first.token, first.fingerprint)
    assert len(world.jobs) == 1


def test_a_duplicated_request_without_idempotency_makes_two_jobs(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        await jobs.create(key=None)

    world = play(
        story,
        {"kind": "request_duplicated", "at": "create#1:committed"},
        contract={"idempotency": {"mechanism": "none"}},
    )
    assert len(world.jobs) == 2


def test_a_copy_counts_as_no_occurrence(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        await jobs.create()
        assert (await jobs.create()).status_code == 503

    world = play(
        story,
        {"kind": "request_duplicated", "at": "create#1:committed"},
        {"kind": "server_error", "at": "create#2:received"},
    )
    assert world.struck == ["request_duplicated", "server_error"]


def test_faults_that_are_healed_while_an_exchange_is_under_way_strike_it_no_more(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        answer = asyncio.create_task(jobs.create())
        await asyncio.sleep(0.25)
        world.boundary.plan.heal()
        assert (await answer).status_code == 202

    world = play(
        story,
        {"kind": "slow_answer", "at": "create#1:received", "seconds": 0.5},
        {"kind": "server_error", "at": "create#1:committed"},
    )
    assert world.struck == ["slow_answer"]
