"""Runs in virtual time. ``Simulation`` is also for those who drive one step by step, as the Hypothesis machine does."""

from collections.abc import Collection, Mapping
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from fake_provider.contract import ResultKind
from fake_provider.engine import Engine
from fake_provider.facts import RequestSent
from fake_provider.lifecycle import TERMINAL, JobState
from fake_provider.outlook import comparable_s
from harness.applicability import retold, sets_a_clock, why_not_patched
from harness.course import Course
from harness.history import Entry, History, StateRecorded
from harness.patching import marks_of
from harness.rules.judge import Judge
from harness.runs import INTRODUCTION, REHEARSAL, Result, boundary_of, follow, terms_of
from harness.simulation import Livelock, SimulatedClock, SimulationError, SimulationLoop
from harness.stage import Notebook, SubjectError
from harness.subject import Capability, Outlook
from harness.subjects.in_process import BASE_URL, SimulatedStage
from harness.subjects.resolve import Subject
from scenarios.model import Scenario, Step

__all__ = ["PatchedSimulation", "Simulation", "WorldOutlook", "simulated_capabilities"]

MAX_REQUESTS_PER_INSTANT: Final = 10_000
"""A run of thousands of operations sends one for each at once; a client that polls without a pause would never end."""

_FOR_PEOPLE: Final[tuple[Capability, ...]] = ("decide", "reconcile")


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
        self._at_once = (0.0, 0)  # the last instant in which something was sent, and how many requests there were
        clock = SimulatedClock(self.loop)
        terms = terms_of(scenario, seed)
        history = History(self.loop.time, [self.judge.observe, self._count_at_once])
        notebook = Notebook(history.record, terms.secrets)
        boundary = boundary_of(scenario, seed, terms, history, dialect)
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

    def _count_at_once(self, entry: Entry) -> None:
        """Refuse to go on with a client that asks without end and never waits: no callback of the loop gets a turn."""
        if not isinstance(entry.fact, RequestSent):
            return
        at, count = self._at_once
        self._at_once = (entry.at, count + 1 if entry.at == at else 1)
        if self._at_once[1] > MAX_REQUESTS_PER_INSTANT:
            raise Livelock(
                f"more than {MAX_REQUESTS_PER_INSTANT} requests were sent at t={at:.3f}s while no time passed: "
                "the client asks again without waiting"
            )

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
        timers = [(host, comparable_s(in_s)) for host, in_s in self.loop.timers()]
        state = (clients.state, provider, timers, self.course.to_come())
        # Written down at once: what a client shows of itself may change under our hands.
        return WorldOutlook(state=msgspec.Raw(msgspec.json.encode(state)), ends=clients.ends, dues=dues)

    def restart_randomness(self) -> None:
        """From here on the clients draw what they would draw in any other run that is as far."""
        self._stage.restart_randomness()

    @property
    def capabilities(self) -> Collection[Capability]:
        """What the first worker's client can do, as far as its methods tell."""
        webhooks: list[Capability] = ["webhooks"] if self._stage.hears_webhooks else []
        return {"cancel", "workers", *webhooks, *self.commands}

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
        await follow(self.course)

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


def simulated_capabilities(subject: Subject) -> Collection[Capability]:
    """What a simulated subject can do: all that the harness can see to, what it has methods for, and what it does of
    itself. Whether it says when it makes a durable write, one operation shows with which nothing goes wrong.
    """
    assert subject.factory is not None
    with Simulation(INTRODUCTION, subject.factory, seed=0) as simulation:
        simulation.start()
        known = simulation.capabilities
    with Simulation(REHEARSAL, subject.factory, seed=0) as simulation:
        simulation.follow_story()
        is_noting = any(isinstance(entry.fact, StateRecorded) for entry in simulation.history)
    return {*known, "checkpoints"} if is_noting else known
