"""A worker that is killed or frozen at a commit point, and a store that refuses."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from pydantic import ValidationError

from fake_provider.effects import KillHost, SetClock, StopHost, StoreFate
from fake_provider.facts import AnswerEnded, CommitPoint, FaultStruck, JobCreated
from fake_provider.faults.host import ClockSkewed

if TYPE_CHECKING:
    from tests.fake_provider.conftest import Play, World

POINTS = {"before_receipt": 0, "received": 1, "committed": 1, "answering": 1, "delivered": 1}


async def _create_on_a_host(world: World, reached: list[str]) -> None:
    async def life() -> None:
        async with world.client("w1") as client:
            try:
                await client.post("/v1/jobs", json={"kind": "x"}, headers={"Idempotency-Key": "k"})
                reached.append("answer")
            finally:
                reached.append("finally")

    task = world.on_host("w1", life)
    await asyncio.sleep(10)
    assert task.done() == bool(reached)


@pytest.mark.parametrize(("point", "jobs_made"), POINTS.items())
def test_a_killed_worker_goes_no_further_and_its_request_is_carried_out(play: Play, point: str, jobs_made: int) -> None:
    reached: list[str] = []
    world = play.world({"kind": "kill", "at": f"create#1:{point}"})
    world.run(lambda world: _create_on_a_host(world, reached))
    assert world.done_to_hosts == [("kill", "w1")]
    assert reached == []
    assert len(world.jobs) == jobs_made
    (ended,) = world.of(AnswerEnded)
    assert ended.fate == ("delivered" if point == "delivered" else "abandoned")


def test_a_request_that_is_slow_is_finished_for_a_dead_client(play: Play) -> None:
    reached: list[str] = []
    world = play.world(
        {"kind": "slow_answer", "at": "create#1:received", "seconds": 5},
        {"kind": "kill", "at": "create#1:received"},
    )
    world.run(lambda world: _create_on_a_host(world, reached))
    assert len(world.jobs) == 1
    assert world.times[world.facts.index(world.of(JobCreated)[0])] == 5
    assert world.fates == ["abandoned"]


@pytest.mark.parametrize("point", POINTS)
def test_a_worker_that_is_stopped_and_resumed_gets_its_answer(play: Play, point: str) -> None:
    reached: list[str] = []
    world = play.world({"kind": "stop", "at": f"create#1:{point}", "for_s": 4})
    world.run(lambda world: _create_on_a_host(world, reached))
    assert reached == ["answer", "finally"]
    assert world.fates == ["delivered"]


def test_a_worker_that_is_stopped_for_good_goes_no_further(play: Play) -> None:
    reached: list[str] = []
    world = play.world({"kind": "stop", "at": "create#1:committed"})
    world.run(lambda world: _create_on_a_host(world, reached))
    assert reached == []


def _write(world: World, point: str, state: str = "accepted", worker: str = "w1") -> StoreFate:
    return world.boundary.store_point(
        worker=worker, operation="op-1", state=state, point=CommitPoint(point), now=world.clock.now()
    )


def test_a_store_refuses_the_write_that_was_addressed(play: Play) -> None:
    world = play.world({"kind": "write_refused", "at": "store[accepted]#2:received", "reason": "quota"})
    refusals = []
    for state in ("create_pending", "accepted", "accepted", "accepted"):
        fate = _write(world, "received", state)
        refusals.append(fate.refuse)
        if fate.refuse is None:
            _write(world, "committed", state)
    assert refusals == [None, None, "quota", None]


def test_a_worker_dies_after_a_write_is_durable(play: Play) -> None:
    world = play.world({"kind": "kill", "at": "store[accepted]#1:committed"})
    assert _write(world, "received") == StoreFate()
    assert _write(world, "committed").host == (KillHost("w1"),)
    (struck,) = world.of(FaultStruck)
    assert (struck.worker, struck.operation, struck.exchange) == ("w1", "op-1", None)


def test_a_worker_freezes_before_a_write(play: Play) -> None:
    world = play.world({"kind": "stop", "at": "store#1:received@w2", "for_s": 3})
    assert _write(world, "received", worker="w1") == StoreFate()
    assert _write(world, "received", worker="w2").host == (StopHost("w2", 3),)


def test_a_client_that_says_nothing_before_its_writes_is_struck_after_them(play: Play) -> None:
    world = play.world({"kind": "kill", "at": "store#2:committed"})
    assert _write(world, "committed") == StoreFate()
    assert _write(world, "committed").host == (KillHost("w1"),)


def test_a_worker_dies_when_it_has_answered_a_webhook(play: Play) -> None:
    async def story(world: World) -> None:
        async with world.client("w2") as client:
            await client.post("/v1/jobs", json={"kind": "x"}, headers={"Idempotency-Key": "k"})
            await asyncio.sleep(3)

    world = play.world({"kind": "kill", "at": "webhook#1:delivered"}, contract={"webhooks": {"enabled": True}})
    world.run(story)
    assert world.done_to_hosts == [("kill", "w1")]


@pytest.mark.parametrize("point", POINTS)
def test_the_clock_of_a_worker_is_set_wrong_and_its_request_is_answered(play: Play, point: str) -> None:
    reached: list[str] = []
    world = play.world({"kind": "clock_skewed", "at": f"create#1:{point}", "ahead_s": -90})
    world.run(lambda world: _create_on_a_host(world, reached))
    assert world.clocks_set == [("w1", -90)]
    assert reached == ["answer", "finally"]
    (struck,) = world.of(FaultStruck)
    assert (struck.kind, struck.point) == ("clock_skewed", point)


def test_the_clock_of_a_worker_is_set_wrong_at_a_write_and_at_a_webhook(play: Play) -> None:
    async def story(world: World) -> None:
        async with world.client("w2") as client:
            await client.post("/v1/jobs", json={"kind": "x"}, headers={"Idempotency-Key": "k"})
            await asyncio.sleep(3)

    world = play.world(
        {"kind": "clock_skewed", "at": "store#1:committed", "ahead_s": 60},
        {"kind": "kill", "at": "store#1:committed"},
        {"kind": "clock_skewed", "at": "webhook#1:delivered"},
        contract={"webhooks": {"enabled": True}},
    )
    assert _write(world, "committed").host == (SetClock("w1", 60), KillHost("w1"))
    world.run(story)
    assert world.clocks_set == [("w1", 3600)]


def test_no_clock_is_wrong_by_more_than_makes_a_difference() -> None:
    with pytest.raises(ValidationError, match="ahead_s"):
        ClockSkewed.model_validate({"at": "create#1:committed", "ahead_s": 1e12})
