"""Runs in real time: processes, on real sockets, side by side."""

import asyncio
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Final, get_args

import msgspec

from fake_provider.clock import Clock, SystemClock
from fake_provider.engine import Engine
from harness.applicability import sets_a_clock, why_not_process
from harness.course import Course
from harness.editions import rules_of
from harness.history import History
from harness.rules.judge import Judge
from harness.runs import INTRODUCTION, Job, Result, boundary_of, follow, terms_of
from harness.stage import Notebook, SubjectBroken, SubjectError
from harness.standstill import Standstill
from harness.subject import Capability
from harness.subjects.one_shot import OneShotStage
from harness.subjects.process import ProcessStage
from harness.verdict import Verdict

__all__ = ["TRIES", "introduced", "run_process", "run_side_by_side"]

AT_ONCE: Final = 12
"""Runs in real time mostly wait. More at once would make their workers wait for the two cores of a small machine
instead."""

PROGRAM_START_S: Final = 20.0
"""For a one-shot program to come up, which is not counted as time of the story."""

TRIES: Final = 3
"""How often a run is made at most, where the machine stood still during it."""

_BEARABLE_STANDSTILL: Final = 0.25
"""The part of a client's request time-out that the machine may stand still without a part in what comes."""


async def run_side_by_side(jobs: Sequence[tuple[int, Job]], keep: Callable[[int, Result], None]) -> None:
    """Make several runs in real time, :data:`AT_ONCE` at a time, and hand each result to ``keep`` with its number.

    Raises:
        SubjectError: the first of those that a run raised.
    """
    places = asyncio.Semaphore(AT_ONCE)

    async def one(number: int, job: Job) -> None:
        async with places:
            keep(number, await run_process(job))

    try:
        async with asyncio.TaskGroup() as group:
            for number, job in jobs:
                group.create_task(one(number, job))
    except* SubjectError as errors:
        raise errors.exceptions[0] from None


async def run_process(job: Job) -> Result:
    """Make a run in real time; make it again if it did not pass on a machine that stood still meanwhile.

    Raises:
        SubjectError: the subject cannot be run at all, or not in real time.
    """
    bearable_s = job.scenario.timing.request_timeout_s * _BEARABLE_STANDSTILL
    tries = 0
    while True:
        tries += 1
        async with Standstill() as standstill:
            result = await _made_once(job)
        if result.outcome.verdict is Verdict.PASS or standstill.longest_s <= bearable_s:
            return result
        if tries == TRIES:
            why = f"this machine stood still for {standstill.longest_s:.1f} s meanwhile, at the last of {tries} tries"
            return replace(
                result, outcome=msgspec.structs.replace(result.outcome, reason=f"{result.outcome.reason}; {why}")
            )


async def _made_once(job: Job) -> Result:
    command = job.subject.command
    if command is None:
        raise SubjectError(f"{job.subject.name!r} is no process subject: give a command after --")
    scenario, seed = job.scenario, job.effective_seed
    if sets_a_clock(scenario):
        raise SubjectError(f"{scenario.name}: {why_not_process(scenario, get_args(Capability))}")
    kind = OneShotStage if job.subject.one_shot else ProcessStage
    clock: Clock = SystemClock()
    started = time.monotonic()
    judge = Judge(rules_of(job.edition))
    history = History(lambda: time.monotonic() - started, [judge.observe])
    terms = terms_of(scenario, seed)
    notebook = Notebook(history.record, terms.secrets)
    boundary = boundary_of(scenario, seed, terms, history)
    stage = kind(command, terms=terms, notebook=notebook)
    engine = Engine(boundary, clock, hosts=stage, deliver=stage.deliver)
    stage.attach(engine)
    notebook.attach(engine)
    course = Course(
        scenario,
        mode="process",
        seed=seed,
        terms=terms,
        origin="http://127.0.0.1",
        stage=stage,
        boundary=boundary,
        history=history,
        notebook=notebook,
        judge=judge,
        clock=clock,
        now=lambda: time.monotonic() - started,
    )
    trouble = None
    try:
        engine.start()
        try:
            await course.start()
            await follow(course, start_s=PROGRAM_START_S if job.subject.one_shot else None)
        except SubjectBroken as error:
            trouble = str(error)
        outcome = course.conclude(reproduce=job.reproduce, trouble=trouble)
    except BaseException:  # interrupted, or broken off: nobody waits for workers to end in good order
        await stage.close(at_once=True)
        raise
    else:
        await stage.close(at_once=trouble is not None)
        return Result(outcome, history, {name: log.text for name, log in stage.logs.items()})
    finally:
        await engine.close()


async def introduced(command: tuple[str, ...]) -> Collection[Capability]:
    """Start a process subject, and return what it says it can do.

    Raises:
        SubjectBroken: it did not answer.
        SubjectError: it cannot be started.
    """
    scenario = INTRODUCTION
    terms, history = terms_of(scenario, 0), History(time.monotonic)
    stage = ProcessStage(command, terms=terms, notebook=Notebook(history.record, terms.secrets))
    engine = Engine(boundary_of(scenario, 0, terms, history), SystemClock(), hosts=stage, deliver=stage.deliver)
    stage.attach(engine)
    try:
        capabilities = await stage.introduce("w1")
    except BaseException:  # interrupted, or it did not come up: nobody waits for it to end in good order
        await stage.close(at_once=True)
        raise
    else:
        await stage.close()
        return capabilities
    finally:
        await engine.close()
