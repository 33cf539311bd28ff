"""Virtual time, hosts that die and freeze, and what a simulated client may not do."""

import asyncio
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from harness.simulation import (
    EPOCH,
    TICK_S,
    Deadlock,
    Livelock,
    RealIO,
    SimulatedClock,
    SimulatedHost,
    SimulationLoop,
)


@pytest.fixture
def loop() -> Iterator[SimulationLoop]:
    loop = SimulationLoop()
    yield loop
    loop.close()


async def tick(loop: SimulationLoop, log: list[float]) -> None:
    while True:
        await asyncio.sleep(1)
        log.append(loop.time())


def test_an_hour_passes_at_once(loop: SimulationLoop) -> None:
    clock = SimulatedClock(loop)
    loop.run_until_complete(clock.sleep(3600))
    assert loop.time() == 3600
    assert clock.now() == EPOCH + 3600


def test_timers_run_in_the_order_of_their_times(loop: SimulationLoop) -> None:
    seen: list[str] = []

    async def after(delay: float, name: str) -> None:
        await asyncio.sleep(delay)
        seen.append(name)

    async def main() -> None:
        await asyncio.gather(after(3, "c"), after(1, "a"), after(2, "b"))

    loop.run_until_complete(main())
    assert seen == ["a", "b", "c"]


@pytest.mark.parametrize("order", [("w1", "w2"), ("w2", "w1")])
def test_timers_of_one_instant_run_in_the_order_of_their_hosts(loop: SimulationLoop, order: tuple[str, str]) -> None:
    """Whichever set its timer first: what happens next does not depend on what happened long ago."""
    seen: list[str] = []

    async def after(delay: float, name: str) -> None:
        await asyncio.sleep(delay)
        seen.append(name)

    async def main() -> None:
        tasks = [SimulatedHost(name).spawn(loop, after(2, name)) for name in order]
        tasks += [loop.create_task(after(2, "harness, first")), loop.create_task(after(2, "harness, second"))]
        await asyncio.gather(*tasks)

    loop.run_until_complete(main())
    assert seen == ["harness, first", "harness, second", "w1", "w2"]


def test_how_long_a_wait_takes_does_not_depend_on_when_it_begins(loop: SimulationLoop) -> None:
    """Not even in its last digit, although a time of day has few digits left for fractions of a second."""
    clock = SimulatedClock(loop)
    took: set[float] = set()

    async def main() -> None:
        for begins_in_s in (0.1, 0.7, 3.3, 1000.9):
            await clock.sleep(begins_in_s)
            began, due = loop.time(), clock.now() + 2.1
            await clock.sleep(0.3)
            await clock.sleep(due - clock.now())
            assert clock.now() >= due
            took.add(loop.time() - began)

    loop.run_until_complete(main())
    (only,) = took
    assert only == pytest.approx(2.1, abs=TICK_S)


def test_a_wait_without_end_has_none(loop: SimulationLoop) -> None:
    async def main() -> None:
        forever = loop.create_task(asyncio.sleep(float("inf")))
        await asyncio.sleep(3600)
        assert not forever.done()
        forever.cancel()

    loop.run_until_complete(main())


def test_a_frozen_host_does_nothing_and_catches_up_when_thawed(loop: SimulationLoop) -> None:
    log: list[float] = []

    async def main() -> None:
        host = SimulatedHost("w1")
        host.spawn(loop, tick(loop, log))
        await asyncio.sleep(2.5)
        host.freeze()
        await asyncio.sleep(4)
        assert log == [1, 2]
        host.thaw(loop)
        await asyncio.sleep(1.2)
        host.kill()

    loop.run_until_complete(main())
    # The timer that ran out at 3 s fires on thawing at 6.5 s; the next is a second after that.
    assert log == [1, 2, 6.5, 7.5]


def test_freezing_one_host_leaves_another_alone(loop: SimulationLoop) -> None:
    frozen_log: list[float] = []
    other_log: list[float] = []

    async def main() -> None:
        frozen, other = SimulatedHost("w1"), SimulatedHost("w2")
        frozen.spawn(loop, tick(loop, frozen_log))
        other.spawn(loop, tick(loop, other_log))
        frozen.freeze()
        await asyncio.sleep(2.5)
        frozen.kill()
        other.kill()

    loop.run_until_complete(main())
    assert frozen_log == []
    assert other_log == [1, 2]


def test_a_killed_host_runs_no_more_code_not_even_a_finally(loop: SimulationLoop) -> None:
    seen: list[str] = []

    async def careful() -> None:
        try:
            await asyncio.sleep(1)
            seen.append("went on")
        finally:
            seen.append("cleaned up")

    async def main() -> list[str]:
        host = SimulatedHost("w1")
        task = host.spawn(loop, careful())
        await asyncio.sleep(0.5)
        host.kill()
        await asyncio.sleep(5)
        assert not task.done()
        return list(seen)

    assert loop.run_until_complete(main()) == []


def test_a_task_that_a_host_starts_belongs_to_that_host(loop: SimulationLoop) -> None:
    log: list[float] = []

    async def parent() -> None:
        asyncio.create_task(tick(loop, log), name="child")  # noqa: RUF006
        await asyncio.sleep(0)

    async def main() -> None:
        host = SimulatedHost("w1")
        await host.spawn(loop, parent())
        await asyncio.sleep(1.5)
        host.kill()
        await asyncio.sleep(3)

    loop.run_until_complete(main())
    assert log == [1]


def test_the_dead_cannot_be_thawed(loop: SimulationLoop) -> None:
    host = SimulatedHost("w1")
    host.kill()
    with pytest.raises(ValueError, match="w1 is dead"):
        host.thaw(loop)


def test_settling_waits_for_all_that_happens_at_this_instant(loop: SimulationLoop) -> None:
    seen: list[int] = []

    async def chain() -> None:
        for number in range(5):
            await asyncio.sleep(0)
            seen.append(number)
        await asyncio.sleep(1)
        seen.append(99)

    async def main() -> None:
        task = asyncio.create_task(chain())
        await loop.settle()
        assert seen == [0, 1, 2, 3, 4]
        assert loop.time() == 0
        await task

    loop.run_until_complete(main())


def test_waiting_for_nothing_is_a_deadlock(loop: SimulationLoop) -> None:
    with pytest.raises(Deadlock, match="nothing is scheduled"):
        loop.run_until_complete(loop.create_future())


def test_spinning_without_waiting_is_a_livelock(loop: SimulationLoop) -> None:
    async def spin() -> None:
        while True:  # noqa: ASYNC110  spinning is the point
            await asyncio.sleep(0)

    with pytest.raises(Livelock, match="spins"):
        loop.run_until_complete(spin())


def _connect() -> None:
    with socket.socket() as client:
        client.connect(("127.0.0.1", 9))


def _sleep() -> None:
    time.sleep(0.001)


def _spawn() -> None:
    subprocess.run([sys.executable, "-c", ""], check=True)


@pytest.mark.parametrize(
    ("act", "named"),
    [(_connect, "a network connection"), (_sleep, r"time\.sleep"), (_spawn, "another process")],
)
def test_blocking_calls_of_a_host_are_refused(loop: SimulationLoop, act: Callable[[], None], named: str) -> None:
    async def main() -> None:
        host = SimulatedHost("w1")

        async def work() -> None:
            act()

        await host.spawn(loop, work())

    with pytest.raises(RealIO, match=f"w1 tried {named}"):
        loop.run_until_complete(main())


async def _thread() -> None:
    await asyncio.to_thread(_sleep)


async def _stream() -> None:
    await asyncio.open_connection("127.0.0.1", 9)


async def _look_up() -> None:
    await asyncio.get_running_loop().getaddrinfo("provider.test", 80)


@pytest.mark.parametrize("work", [_thread, _stream, _look_up])
def test_real_io_through_asyncio_is_refused(
    loop: SimulationLoop, work: Callable[[], Coroutine[Any, Any, None]]
) -> None:
    with pytest.raises(RealIO, match="--mode process"):
        loop.run_until_complete(SimulatedHost("w1").spawn(loop, work()))


def test_outside_a_simulation_blocking_calls_work_as_ever(loop: SimulationLoop) -> None:
    loop.run_until_complete(asyncio.sleep(1))
    before = time.sleep
    time.sleep(0)
    assert before is time.sleep
    assert "harness" not in getattr(time.sleep, "__module__", "")


def test_the_timers_of_living_hosts_are_told_with_the_seconds_until_they_come(loop: SimulationLoop) -> None:
    living, dead = SimulatedHost("w1"), SimulatedHost("w2")

    async def main() -> None:
        for host, delay in ((living, 3.0), (dead, 2.0)):
            host.spawn(loop, asyncio.sleep(delay))
        await asyncio.sleep(1)
        dead.kill()

    loop.run_until_complete(main())
    assert loop.timers() == [("w1", 2.0)]


def test_the_end_of_an_instant_is_told_when_all_of_it_has_happened(loop: SimulationLoop) -> None:
    seen: list[object] = []
    loop.before_time_passes(lambda: seen.append(loop.time()))

    async def main() -> None:
        seen.append("begins")
        await asyncio.sleep(0)
        seen.append("goes on")
        await asyncio.sleep(2)

    loop.run_until_complete(main())
    assert seen == ["begins", "goes on", 0.0]
