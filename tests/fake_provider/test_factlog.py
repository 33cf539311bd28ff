"""A session's history: bounded in memory, whole on disk, followed as it grows."""

import asyncio
from collections.abc import Iterator

import pytest

from fake_provider.factlog import FactLog
from fake_provider.facts import FaultsHealed


def _fact(number: int) -> FaultsHealed:
    return FaultsHealed(struck=number, planned=number)


@pytest.fixture
def log() -> Iterator[FactLog]:
    times = iter(range(1_000))
    log = FactLog(lambda: float(next(times)), keep=3)
    for number in range(10):
        log.record(_fact(number))
    yield log
    log.close()


def test_facts_are_numbered_and_timed_from_the_start(log: FactLog) -> None:
    assert [(logged.seq, logged.at) for logged in log.read(0, 3)] == [(0, 1.0), (1, 2.0), (2, 3.0)]


@pytest.mark.parametrize("start", range(12))
@pytest.mark.parametrize("limit", [1, 2, 5, 20])
def test_facts_are_read_alike_from_memory_and_from_the_file(log: FactLog, start: int, limit: int) -> None:
    numbers = [logged.fact.struck for logged in log.read(start, limit) if isinstance(logged.fact, FaultsHealed)]
    assert numbers == list(range(start, min(10, start + limit)))


def test_only_the_newest_are_in_memory(log: FactLog) -> None:
    assert (len(log), len(log._recent)) == (10, 3)


def test_a_follower_sees_what_was_and_what_comes_until_the_log_is_closed(log: FactLog) -> None:
    async def story() -> list[int]:
        seen: list[int] = []

        async def follow() -> None:
            async for logged in log.follow(8):
                seen.append(logged.seq)
                if logged.seq == 9:
                    both_seen.set()

        both_seen = asyncio.Event()
        following = asyncio.create_task(follow())
        await both_seen.wait()
        log.record(_fact(10))
        log.record(_fact(11))
        log.close()
        await following
        return seen

    assert asyncio.run(story()) == [8, 9, 10, 11]
