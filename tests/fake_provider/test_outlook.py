"""What the provider will go on from: the same for worlds that differ in nothing but the time of day."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from fake_provider.work import Work
from tests.fake_provider.conftest import Jobs, Play, World

Story = Callable[[World, Jobs], Awaitable[object]]
WORK = {"default": Work(takes_s=1.5)}


def outlook(play: Play, story: Story, *, wait_s: float = 0.0) -> tuple[Any, dict[str, float]]:
    """Play a story after a while, and return the outlook at its end."""
    world = play.world(work=WORK)

    async def told(world: World) -> tuple[Any, dict[str, float]]:
        await world.clock.sleep(wait_s)
        async with world.client() as client:
            await story(world, Jobs(client))
        return world.boundary.outlook(world.clock.now())

    state, ends = world.run(told)
    return msgspec.to_builtins(state), ends


async def running(world: World, jobs: Jobs) -> None:
    await jobs.created()
    await world.clock.sleep(0.5)


async def finished(world: World, jobs: Jobs) -> None:
    await jobs.created()
    await world.clock.sleep(2)


async def collected(world: World, jobs: Jobs) -> None:
    job = await jobs.created()
    await world.clock.sleep(2)
    await jobs.result(job)


@pytest.mark.parametrize("story", [running, finished, collected])
def test_the_time_of_day_is_not_in_it(play: Play, story: Story) -> None:
    (state, ends), (later_state, later_ends) = outlook(play, story), outlook(play, story, wait_s=3.25)
    assert state == later_state
    assert ends == pytest.approx(later_ends, abs=1e-4)


def test_what_is_due_is_named_with_the_seconds_until_then(play: Play) -> None:
    _, ends = outlook(play, running)
    assert ends["job 0 ends"] == pytest.approx(1.0)
    _, ends = outlook(play, finished)
    assert "job 0 ends" not in ends


def test_a_result_that_was_read_is_part_of_it(play: Play) -> None:
    (unread, _), (read, _) = outlook(play, finished), outlook(play, collected)
    assert unread != read
