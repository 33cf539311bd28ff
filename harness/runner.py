"""Runs scenarios: puts provider, network, stage and judge together, in virtual time or in real time, and drives the
course.

``Simulation`` is the same for those who drive a run step by step (the Hypothesis machine); ``run`` and ``run_many``
follow the story.
"""

import asyncio
import shlex
import time
from base64 import b64encode
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from types import TracebackType
from typing import Any, Final, Self, get_args

import msgspec

from fake_provider.boundary import Boundary
from fake_provider.clock import Clock, SystemClock
from fake_provider.contract import ResultKind
from fake_provider.engine import Engine
from fake_provider.lifecycle import TERMINAL, JobState
from harness.applicability import retold, sets_a_clock, why_not, why_not_patched, why_not_process
from harness.course import Course
from harness.editions import rules_of
from harness.garbage import heap_set_aside
from harness.history import History
from harness.interrupts import run_interruptibly
from harness.patching import marks_of
from harness.rules.judge import Judge
from harness.simulation import SimulatedClock, SimulationError, SimulationLoop
from harness.stage import Notebook, SubjectBroken, SubjectError, Terms
from harness.standstill import Standstill
from harness.subject import Capability, Outlook
from harness.subjects.in_process import BASE_URL, SimulatedStage
from harness.subjects.one_shot import OneShotStage
from harness.subjects.process import ProcessStage
from harness.subjects.resolve import Subject
from harness.verdict import LeftOut, Outcome, Verdict
from scenarios.model import Scenario, Step

__all__ = [
    "Job",
    "PatchedSimulation",
    "Result",
    "Simulation",
    "WorldOutlook",
    "capabilities_of",
    "run",
    "run_many",
    "simulated_capabilities",
    "sort_out",
]

PROCESS_RUNS_AT_ONCE: Final = 10
"""Runs in real time mostly wait. More at once would make their workers wait for the two cores of a small machine
instead."""


PROGRAM_START_S: Final = 20.0
"""For a one-shot program to come up, which is not counted as time of the story."""

REAL_TIME_TRIES: Final = 3
"""How often a run in real time is made at most, where the machine stood still during it."""

_BEARABLE_STANDSTILL: Final = 0.25
"""The part of a client's request time-out that the machine may stand still without a part in what comes."""

_DIGITS: Final = 4
"""Of seconds: finer than any wait of a client, coarser than the last digits of the time of day."""

_FOR_PEOPLE: Final[tuple[Capability, ...]] = ("decide", "reconcile")

_INTRODUCTION: Final = Scenario.model_validate(
    {"name": "introduction", "summary": "None.", "steps": [{"at": 0, "do": "wait"}]}
)
"""In which a client only says what it can do."""


@dataclass(frozen=True)
class Result:
    """What a run came to, the history that proves it, and what each worker's processes logged."""

    outcome: Outcome
    history: History
    logs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Job:
    """One run to be made. ``source`` is how a person names the scenario: its name in the catalogue, or a path."""

    scenario: Scenario
    subject: Subject
    mode: str
    seed: int | None = None
    source: str | None = None
    edition: int | None = None  # of the rules it is judged by; all of them if left out

    @property
    def effective_seed(self) -> int:
        """The command line's seed, or the scenario's own."""
        return self.scenario.seed if self.seed is None else self.seed

    @property
    def reproduce(self) -> str:
        """The command line that makes this run once more."""
        words = ["jobsworth", "replay", self.source or self.scenario.name]
        if self.subject.command is None:
            words.append(self.subject.name)
        words += ["--mode", self.mode, "--seed", str(self.effective_seed)]
        if self.edition is not None:
            words += ["--rules", str(self.edition)]
        if self.subject.factory is None and self.subject.command is not None:
            words += ["--one-shot"] * self.subject.one_shot + ["--", *self.subject.command]
        return shlex.join(words)


def run(
    scenario: Scenario,
    subject: Subject,
    *,
    mode: str | None = None,
    seed: int | None = None,
    source: str | None = None,
    edition: int | None = None,
) -> Result:
    """Run one scenario against one subject.

    Args:
        mode: one of ``subject.modes``; the quickest if left out.
        source: how a person names the scenario.
        edition: of the rules; all of them if left out.

    Raises:
        SubjectError: the subject cannot be put under test in this mode.
    """
    mode = mode or subject.modes[0]
    job = Job(scenario=scenario, subject=subject, mode=mode, seed=seed, source=source, edition=edition)
    with heap_set_aside():
        return _run(job)


def sort_out(jobs: Sequence[Job]) -> tuple[list[Job], list[LeftOut]]:
    """Set aside the runs whose scenario does not apply to the client, by what it says it can do.

    A process that speaks the session protocol is started once to be asked.

    Raises:
        SubjectBroken: it did not answer.
        SubjectError: it cannot be started.
    """
    known: dict[Subject, Collection[Capability]] = {}
    applies, left_out = [], []
    for job in jobs:
        reason = None
        if job.mode == "patched":
            reason = why_not_patched(job.scenario, marks_of(job.subject.patched))
        elif job.mode == "process":
            if job.subject not in known:
                known[job.subject] = capabilities_of(job.subject)
            reason = why_not_process(job.scenario, known[job.subject])
        else:
            if job.subject not in known:
                known[job.subject] = simulated_capabilities(job.subject)
            reason = why_not(job.scenario, known[job.subject])
        if reason is None:
            applies.append(job)
        else:
            left_out.append(LeftOut(scenario=job.scenario.name, mode=job.mode, reason=reason))
    return applies, left_out


def simulated_capabilities(subject: Subject) -> Collection[Capability]:
    """What a simulated subject can do: all that the harness can see to, and the commands that it has methods for."""
    assert subject.factory is not None
    with Simulation(_INTRODUCTION, subject.factory, seed=0) as simulation:
        simulation.start()
        return simulation.capabilities


def capabilities_of(subject: Subject) -> Collection[Capability]:
    """What a process subject can do beyond the least.

    Raises:
        SubjectBroken: it did not answer.
        SubjectError: it cannot be started.
    """
    return () if subject.one_shot or subject.command is None else run_interruptibly(_introduced(subject.command))


async def _introduced(command: tuple[str, ...]) -> Collection[Capability]:
    scenario = _INTRODUCTION
    terms, history = _terms(scenario, 0), History(time.monotonic)
    stage = ProcessStage(command, terms=terms, notebook=Notebook(history.record, terms.secrets))
    engine = Engine(_boundary(scenario, 0, terms, history), SystemClock(), hosts=stage, deliver=stage.deliver)
    stage.attach(engine)
    try:
        return await stage.introduce("w1")
    finally:
        await stage.close()
        await engine.close()


def run_many(jobs: Sequence[Job], on_done: Callable[[Result], object] = lambda _: None) -> list[Result]:
    """Make runs: those in virtual time one after the other, those in real time side by side.

    Args:
        on_done: shown each result as it comes, in no particular order.

    Returns:
        the results in the order of ``jobs``.

    Raises:
        SubjectError: a subject cannot be put under test; the other runs are ended.
    """
    results: dict[int, Result] = {}

    def keep(number: int, result: Result) -> None:
        results[number] = result
        on_done(result)

    real = []
    with heap_set_aside():
        for number, job in enumerate(jobs):
            if job.mode == "process":
                real.append((number, job))
            else:
                keep(number, _run(job))
        if real:
            run_interruptibly(_run_side_by_side(real, keep))
    return [results[number] for number in range(len(jobs))]


def _run(job: Job) -> Result:
    if job.mode not in job.subject.modes:
        raise SubjectError(
            f"{job.subject.name!r} cannot be run in mode {job.mode!r}; it can in {', '.join(job.subject.modes)}"
        )
    if job.mode == "process":
        return run_interruptibly(_run_process(job))
    judge = Judge(rules_of(job.edition))
    simulated = job.mode == "simulated"
    factory = job.subject.factory if simulated else job.subject.patched
    assert factory is not None
    kind = Simulation if simulated else PatchedSimulation
    with kind(job.scenario, factory, seed=job.effective_seed, judge=judge) as simulation:
        simulation.follow_story()
        return simulation.conclude(job.reproduce)


# -- virtual time


class WorldOutlook(Outlook, frozen=True, kw_only=True):
    """What a whole run will go on from. ``dues``: as ``ends``, what happens at the provider without anyone calling."""

    dues: Mapping[str, float]


class Simulation:
    """One run in virtual time, driven from ordinary code. A context manager: leaving it throws the hosts away."""

    mode = "simulated"

    def __init__(self, scenario: Scenario, factory: Any, *, seed: int, judge: Judge | None = None) -> None:
        """Args:
        factory: makes the client: a :class:`harness.subject.Factory`.
        """
        dialect, scenario = self._wire(factory, scenario)
        self.loop = self._new_loop()
        self.scenario = scenario
        self.judge = judge or Judge()
        self._trouble: str | None = None
        clock = SimulatedClock(self.loop)
        terms = _terms(scenario, seed)
        history = History(self.loop.time, [self.judge.observe])
        notebook = Notebook(history.record, terms.secrets)
        boundary = _boundary(scenario, seed, terms, history, dialect)
        self._stage = self._new_stage(factory, loop=self.loop, terms=terms, notebook=notebook)
        self._clock = clock
        self._engine: Engine | None = None
        self.course = Course(
            scenario,
            mode=self.mode,
            seed=seed,
            terms=terms,
            origin=BASE_URL,
            stage=self._stage,
            boundary=boundary,
            history=history,
            notebook=notebook,
            judge=self.judge,
            clock=clock,
            now=self.loop.time,
        )
        self._notebook = notebook

    @staticmethod
    def _wire(_factory: Any, scenario: Scenario) -> tuple[str, Scenario]:
        """Return the dialect the provider speaks, and the story as it is told in it."""
        return "jobs", scenario

    @staticmethod
    def _new_loop() -> SimulationLoop:
        return SimulationLoop()

    @staticmethod
    def _new_stage(factory: Any, **options: Any) -> SimulatedStage:
        return SimulatedStage(factory, **options)

    @property
    def history(self) -> History:
        """What happened so far."""
        return self.course.history

    @property
    def trouble(self) -> str | None:
        """Why the run broke off, if it did."""
        return self._trouble

    @property
    def now(self) -> float:
        """Virtual seconds since the start."""
        return self.loop.time()

    def outlook(self) -> WorldOutlook | None:
        """What everything will go on from, the exchanges under way and the hands of frozen workers left out; None if a
        client does not say.
        """
        if self.scenario.contract.result.kind is ResultKind.SIGNED_URL:
            return None  # the links that the clients hold end by themselves, and nobody counts them
        clients = self._stage.outlook()
        if clients is None:
            return None
        provider, dues = self.course.boundary.outlook(self._clock.now())
        timers = [(host, round(in_s, _DIGITS)) for host, in_s in self.loop.timers()]
        state = (clients.state, provider, timers, self.course.to_come())
        # Written down at once: what a client shows of itself may change under our hands.
        return WorldOutlook(state=msgspec.Raw(msgspec.json.encode(state)), ends=clients.ends, dues=dues)

    def restart_randomness(self) -> None:
        """From here on the clients draw what they would draw in any other run that is as far."""
        self._stage.restart_randomness()

    @property
    def capabilities(self) -> Collection[Capability]:
        """What the first worker's client can do, as far as its methods tell."""
        return {"cancel", "checkpoints", "webhooks", "workers", *self.commands}

    @property
    def commands(self) -> Collection[Capability]:
        """The commands beyond the least that the clients have methods for."""
        return [told for told in _FOR_PEOPLE if self._stage.takes(told)]

    def unfinished_operations(self) -> list[str]:
        """Operations that have an unfinished job at the provider, in the order of their jobs."""
        ledger = self.course.boundary.ledger(self._clock.now())
        unfinished = (line.operation for line in ledger if line.operation and JobState(line.state) not in TERMINAL)
        return list(dict.fromkeys(unfinished))

    def start(self) -> None:
        """Bring the provider and the workers up."""
        self.loop.run_until_complete(self._start())

    def apply(self, step: Step) -> None:
        """Do one step now."""
        self.loop.run_until_complete(self.course.apply(step))

    def advance_to(self, at: float) -> None:
        """Let virtual time pass."""
        self.loop.run_until_complete(self.course.advance_to(at))

    def finish(self) -> None:
        """Heal, drain, report."""
        self.loop.run_until_complete(self.course.finish())

    def follow_story(self) -> None:
        """Start, apply every step at its time, and finish. A simulation that cannot go on ends here, and is a doubt."""
        try:
            self.loop.run_until_complete(self._follow_story())
        except SimulationError as error:
            self._trouble = str(error)

    def conclude(self, reproduce: str) -> Result:
        """Add up what the run came to."""
        return Result(self.course.conclude(reproduce=reproduce, trouble=self._trouble), self.course.history)

    async def _start(self) -> None:
        self._engine = Engine(self.course.boundary, self._clock, hosts=self._stage, deliver=self._stage.deliver)
        self._stage.attach(self._engine)
        self._notebook.attach(self._engine)
        self._engine.start()
        await self.course.start()

    async def _follow_story(self) -> None:
        await self._start()
        await _follow(self.course)

    async def _close(self) -> None:
        await self._stage.close()
        if self._engine is not None:
            await self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self.loop.is_closed():
            self.loop.run_until_complete(self._close())
            self.loop.close()


class PatchedSimulation(Simulation):
    """The same for a patched client: a :class:`harness.patching.PatchedFactory` makes it."""

    mode = "patched"

    @staticmethod
    def _wire(factory: Any, scenario: Scenario) -> tuple[str, Scenario]:
        marks = marks_of(factory)
        assert marks is not None, "resolve() takes only marked factories for patched ones"
        told = retold(scenario, marks.dialect)
        if told is None or sets_a_clock(scenario):
            raise SubjectError(f"{scenario.name}: {why_not_patched(scenario, marks)}")
        return marks.dialect, told

    @staticmethod
    def _new_loop() -> SimulationLoop:
        try:
            from harness.subjects.patched import PatchedLoop
        except ModuleNotFoundError as error:
            raise SubjectError(f"patched mode needs {error.name}: pip install 'jobsworth[patched]'") from error
        return PatchedLoop()

    @staticmethod
    def _new_stage(factory: Any, **options: Any) -> SimulatedStage:
        from harness.subjects.patched import PatchedStage

        return PatchedStage.over(factory, **options)


# -- real time


async def _run_side_by_side(jobs: Sequence[tuple[int, Job]], keep: Callable[[int, Result], None]) -> None:
    places = asyncio.Semaphore(PROCESS_RUNS_AT_ONCE)

    async def one(number: int, job: Job) -> None:
        async with places:
            keep(number, await _run_process(job))

    try:
        async with asyncio.TaskGroup() as group:
            for number, job in jobs:
                group.create_task(one(number, job))
    except* SubjectError as errors:
        raise errors.exceptions[0] from None


async def _run_process(job: Job) -> Result:
    """Make a run in real time; make it again if it did not pass on a machine that stood still meanwhile."""
    bearable_s = job.scenario.timing.request_timeout_s * _BEARABLE_STANDSTILL
    tries = 0
    while True:
        tries += 1
        async with Standstill() as standstill:
            result = await _run_process_once(job)
        if result.outcome.verdict is Verdict.PASS or standstill.longest_s <= bearable_s:
            return result
        if tries == REAL_TIME_TRIES:
            why = f"this machine stood still for {standstill.longest_s:.1f} s meanwhile, at the last of {tries} tries"
            return replace(
                result, outcome=msgspec.structs.replace(result.outcome, reason=f"{result.outcome.reason}; {why}")
            )


async def _run_process_once(job: Job) -> Result:
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
    terms = _terms(scenario, seed)
    notebook = Notebook(history.record, terms.secrets)
    boundary = _boundary(scenario, seed, terms, history)
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
            await _follow(course, start_s=PROGRAM_START_S if job.subject.one_shot else None)
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


# -- both


async def _follow(course: Course, *, start_s: float | None = None) -> None:
    """Apply every step at its time.

    Args:
        start_s: how long a command may take to come up, where each one starts a program.
    """
    began = course.now()  # in real time the workers took a while to come up
    for step in course.scenario.steps:
        await course.advance_to(began + step.at)
        await course.apply(step)
        if start_s is not None:
            began += await course.await_start(start_s)
    await course.finish()


def _terms(scenario: Scenario, seed: int) -> Terms:
    draw = Random(f"{seed}:secrets")
    secret = b64encode(draw.randbytes(24)).decode()
    return Terms(
        contract=scenario.contract.model_dump(mode="json"),
        timing=scenario.timing.model_dump(mode="json"),
        authorization=f"Bearer sk-canary-{draw.randbytes(16).hex()}",
        webhook_secrets=(f"whsec_{secret}",),
        seed=seed,
    )


def _boundary(scenario: Scenario, seed: int, terms: Terms, history: History, dialect: str = "jobs") -> Boundary:
    return Boundary(
        scenario.contract,
        dialect=dialect,
        base_url=BASE_URL,
        random=Random(f"{seed}:provider"),
        record=history.record,
        work=scenario.work,
        faults=scenario.faults,
        webhook_secrets=terms.webhook_secrets,
    )
