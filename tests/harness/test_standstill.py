"""A run in real time says nothing of a client while the machine stands still."""

import asyncio
from collections.abc import Callable
from typing import Self

import pytest
from msgspec import structs

import harness.real_time
from harness.real_time import TRIES
from harness.runner import Job, Result, run, run_many
from harness.simulation import TICK_S, SimulationLoop
from harness.standstill import Standstill
from harness.subjects import resolve
from harness.verdict import Verdict
from scenarios.loading import find


def test_the_longest_standstill_is_seen() -> None:
    loop, lost = SimulationLoop(), [0.0]

    async def stand_still() -> float:
        async with Standstill(lambda: loop.time() + sum(lost)) as standstill:
            for seconds in (0.4, 1.5, 0.3):
                await asyncio.sleep(1)
                lost.append(seconds)
            await asyncio.sleep(1)
        return standstill.longest_s

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        assert runner.run(stand_still()) == pytest.approx(1.5, abs=0.06)


def test_a_loop_that_goes_on_did_not_stand_still() -> None:
    loop = SimulationLoop()

    async def go_on() -> float:
        async with Standstill(loop.time) as standstill:
            await asyncio.sleep(5)
        return standstill.longest_s

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        assert runner.run(go_on()) == pytest.approx(0, abs=TICK_S)


Made = Callable[[list[Verdict], float], tuple[Result, int]]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Made:
    """Make one run that comes to these verdicts one after the other; return the result, and how often it was made."""
    example = run(find("happy-path"), resolve())

    def make(verdicts: list[Verdict], stood_still_s: float) -> tuple[Result, int]:
        left = iter(verdicts)
        tries = []

        class StoodStill(Standstill):
            async def __aenter__(self) -> Self:
                self.longest_s = stood_still_s
                self._watching = asyncio.create_task(asyncio.sleep(0))
                return self

        async def once(job: Job) -> Result:
            tries.append(job)
            return Result(structs.replace(example.outcome, verdict=next(left), reason="as it came"), example.history)

        monkeypatch.setattr(harness.real_time, "Standstill", StoodStill)
        monkeypatch.setattr(harness.real_time, "_made_once", once)
        (result,) = run_many([Job(scenario=find("happy-path"), subject=resolve(), mode="process")])
        return result, len(tries)

    return make


@pytest.mark.parametrize("verdict", [Verdict.FAIL, Verdict.UNKNOWN])
def test_a_run_that_did_not_pass_on_a_machine_that_stood_still_is_made_again(made: Made, verdict: Verdict) -> None:
    result, tries = made([verdict, Verdict.PASS], 0.6)
    assert (result.outcome.verdict, result.outcome.reason, tries) == (Verdict.PASS, "as it came", 2)


@pytest.mark.parametrize("verdict", [Verdict.FAIL, Verdict.UNKNOWN])
def test_where_the_machine_stood_still_for_a_moment_only_a_verdict_stands(made: Made, verdict: Verdict) -> None:
    result, tries = made([verdict], 0.1)
    assert (result.outcome.verdict, result.outcome.reason, tries) == (verdict, "as it came", 1)


def test_a_run_that_passed_is_not_made_again(made: Made) -> None:
    result, tries = made([Verdict.PASS], 5.0)
    assert (result.outcome.verdict, tries) == (Verdict.PASS, 1)


def test_in_the_end_the_last_verdict_stands_and_the_reason_tells_of_the_standstill(made: Made) -> None:
    result, tries = made([Verdict.UNKNOWN, Verdict.UNKNOWN, Verdict.FAIL], 1.23)
    assert (result.outcome.verdict, tries) == (Verdict.FAIL, TRIES)
    assert result.outcome.reason == "as it came; this machine stood still for 1.2 s meanwhile, at the last of 3 tries"
