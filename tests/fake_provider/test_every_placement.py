"""Every kind of fault at every place where it can strike, under every preset: nothing of ours breaks."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import httpx2
import msgspec
import pytest

from fake_provider.dialects import DIALECTS
from fake_provider.facts import AnswerEnded, Endpoint, EventDelivered, EventSent, FaultStruck, JobCreated, RequestSent
from fake_provider.faults import KINDS
from fake_provider.lifecycle import TERMINAL
from fake_provider.presets import PRESETS

if TYPE_CHECKING:
    from tests.fake_provider.conftest import Jobs, Play, World

ENDPOINTS = {*DIALECTS["jobs"].endpoints, Endpoint.WEBHOOK}
HOST_KINDS = {"clock_skewed", "kill", "stop", "write_refused"}  # their own tests have hosts
PLACEMENTS = [
    (name, f"{endpoint}#1:{point}")
    for name, cls in KINDS.items()
    if name not in HOST_KINDS
    for endpoint, points in cls.strikes_at.items()
    if endpoint in ENDPOINTS
    for point in points
]


async def _whole_life(world: World, jobs: Jobs) -> None:
    """Use every endpoint, whatever comes back, then heal and wait until all is done."""
    body = {"kind": "report", "client_reference": "op-1", "request_id": "r-1"}
    for _ in range(2):
        with contextlib.suppress(httpx2.TransportError):
            await jobs.create(body=body)
    lines = world.boundary.ledger(world.clock.now())
    job = lines[0].job if lines else "none"
    for call in (jobs.status, jobs.cancel, jobs.status, jobs.result):
        with contextlib.suppress(httpx2.TransportError):
            await call(job)
        await asyncio.sleep(1)
    with contextlib.suppress(httpx2.TransportError):
        await jobs.look_up(client_reference="op-1")
    await asyncio.sleep(30)
    world.boundary.plan.heal()
    await asyncio.sleep(30)


@pytest.mark.parametrize("preset", PRESETS)
def test_whatever_is_planned_every_request_ends_and_every_job_rests(play: Play, preset: str) -> None:
    struck: set[str] = set()
    for kind, at in PLACEMENTS:
        world = play(_whole_life, {"kind": kind, "at": at}, contract=PRESETS[preset])
        where = f"{kind} at {at}"
        assert {fact.exchange for fact in world.of(RequestSent)} == {fact.exchange for fact in world.of(AnswerEnded)}, (
            where
        )
        assert {fact.delivery for fact in world.of(EventSent)} == {
            fact.delivery for fact in world.of(EventDelivered)
        }, where
        assert all(line.state in TERMINAL for line in world.boundary.ledger(world.clock.now())), where
        assert len(world.boundary.ledger(world.clock.now())) == len(world.of(JobCreated)), where
        assert {fact.kind for fact in world.of(FaultStruck)} <= {kind}, where
        assert world.boundary.plan.struck == bool(world.of(FaultStruck)), where
        for fact in world.facts:
            assert msgspec.json.decode(msgspec.json.encode(fact), type=type(fact)) == fact, where
        struck.update(fact.kind for fact in world.of(FaultStruck))
    assert struck, "or this test has shown nothing"
