"""What goes wrong with a cancel."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from fake_provider.facts import CancelTaken, JobMoved

if TYPE_CHECKING:
    from tests.fake_provider.conftest import Jobs, Play, World


def _moves(world: World) -> list[tuple[str, str]]:
    return [(str(moved.after), moved.cause) for moved in world.of(JobMoved)]


def test_a_cancel_is_accepted_and_lost(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        job = await jobs.created()
        answer = await jobs.cancel(job)
        assert (answer.status_code, answer.json()["status"]) == (202, "cancelling")
        assert (await jobs.status(job)).json()["status"] == "running"
        await asyncio.sleep(3)
        assert (await jobs.status(job)).json()["status"] == "succeeded"

    world = play(story, {"kind": "cancel_lost", "at": "cancel#1:received"})
    assert world.of(CancelTaken) == []


def test_a_cancel_is_accepted_and_the_job_completes(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        job = await jobs.created()
        assert (await jobs.cancel(job)).json()["status"] == "cancelling"
        await asyncio.sleep(3)
        assert (await jobs.status(job)).json()["status"] == "succeeded"

    world = play(story, {"kind": "completes_despite_cancel", "at": "cancel#1:received"})
    assert _moves(world) == [
        ("running", "schedule"),
        ("cancelling", "cancel"),
        ("succeeded", "completes_despite_cancel"),
    ]


def test_even_a_confirmed_cancel_may_come_to_nothing(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        job = await jobs.created()
        assert (await jobs.cancel(job)).status_code == 202
        await asyncio.sleep(3)
        assert (await jobs.status(job)).json()["status"] == "succeeded"

    play(
        story,
        {"kind": "completes_despite_cancel", "at": "cancel#1:received"},
        contract={"cancel": {"effect": "confirmed"}},
    )


def test_a_job_ends_just_before_its_cancel(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        job = await jobs.created()
        answer = await jobs.cancel(job)
        assert answer.status_code == 409
        assert answer.json()["type"].endswith("/job-finished")
        assert (await jobs.status(job)).json()["status"] == "succeeded"

    world = play(story, {"kind": "cancel_refused_as_finished", "at": "cancel#1:received"})
    assert _moves(world)[-1] == ("succeeded", "cancel_refused_as_finished")


def test_a_cancel_is_never_confirmed_until_the_faults_are_healed(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        job = await jobs.created()
        await jobs.cancel(job)
        await asyncio.sleep(1_000)
        assert (await jobs.status(job)).json()["status"] == "cancelling"
        world.boundary.plan.heal()
        assert (await jobs.status(job)).json()["status"] == "cancelled"

    play(story, {"kind": "cancel_never_confirmed", "at": "cancel#1:received"})


def test_a_best_effort_cancel_that_is_ignored_and_never_confirmed_lets_the_work_end_when_healed(play: Play) -> None:
    from fake_provider.work import Work

    async def story(world: World, jobs: Jobs) -> None:
        job = await jobs.created()
        await jobs.cancel(job)
        await asyncio.sleep(1_000)
        assert (await jobs.status(job)).json()["status"] == "running"
        world.boundary.plan.heal()
        await asyncio.sleep(1)
        assert (await jobs.status(job)).json()["status"] == "succeeded"

    play(
        story,
        {"kind": "cancel_never_confirmed", "at": "cancel#1:received"},
        contract={"cancel": {"effect": "best_effort"}},
        work={"default": Work(heeds_cancel=False)},
    )


def test_a_cancelled_job_leaves_something_behind_and_says_so(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        job = await jobs.created()
        await jobs.cancel(job)
        assert "partial_effects" not in (await jobs.status(job)).json()
        await asyncio.sleep(1)
        told = (await jobs.status(job)).json()
        assert (told["status"], told["partial_effects"]) == ("cancelled", ["a half-written file"])

    play(story, {"kind": "partial_effects_left", "at": "cancel#1:received", "effects": ["a half-written file"]})


def test_a_second_cancel_is_nothing_to_strike_at(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        job = await jobs.created()
        await jobs.cancel(job)
        await jobs.cancel(job)

    world = play(story, {"kind": "cancel_lost", "at": "cancel#2:received"})
    assert world.struck == []
