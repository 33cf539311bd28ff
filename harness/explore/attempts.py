"""One run of a sweep, boiled down: what it passed, how the client took it, which rules broke. And a crew to make many.

The *reaction* of a run is a digest of everything the client did: its requests, durable writes, leases and claims, each
at its instant, with what became of the jobs, and of all that the provider had in hand when the faults were healed. What
the client was told is not in it. Where two faults at one moment call forth the same reaction, the client and the world
went on from the same state.
"""

import hashlib
import os
import signal
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any, Final

import msgspec

from fake_provider.facts import (
    CancelTaken,
    Endpoint,
    EventDelivered,
    EventSent,
    Fact,
    JobCreated,
    JobMoved,
    RequestSent,
    ResultRead,
)
from harness.explore.placements import Place, Placement, stage
from harness.history import (
    Claimed,
    ClockSet,
    History,
    LeaseNoted,
    LedgerRead,
    StateRecorded,
    SubjectComplained,
    WorkerEnded,
    WorkerResumed,
    WorkerStarted,
    WorkerStopped,
)
from harness.runner import Simulation
from harness.subject import Factory
from harness.subjects.resolve import Subject, resolve
from harness.verdict import Finding
from scenarios.model import Scenario

__all__ = ["Attempt", "Crew", "Task", "attempt", "crew"]

Task = tuple[int, tuple[Placement, ...]]
"""Which story, and the faults to put into it."""

_TASKS_AT_ONCE: Final = 16
"""Sent to a process together: enough for sending to cost little, few enough for the bar to move."""

_UNSAID: Final = {
    RequestSent: ("credential", "copy_of"),
    StateRecorded: ("cause", "reason"),  # these name the answer, which is what may differ
    Claimed: ("explanation",),
    JobMoved: ("cause",),
    ResultRead: ("sha256", "size_bytes"),
    EventSent: ("delivery", "event"),
    EventDelivered: ("delivery", "event"),
    WorkerEnded: ("detail",),
}
"""Fields of facts that are not part of a reaction: they tell what the client was shown, or merely count."""

_SAID: Final[dict[type[Fact], tuple[str, ...]]] = {
    kind: tuple(name for name in kind.__struct_fields__ if name not in {*_UNSAID.get(kind, ()), "exchange"})
    for kind in (
        CancelTaken,
        Claimed,
        ClockSet,
        EventDelivered,
        EventSent,
        JobCreated,
        JobMoved,
        LeaseNoted,
        LedgerRead,
        RequestSent,
        ResultRead,
        StateRecorded,
        SubjectComplained,
        WorkerEnded,
        WorkerResumed,
        WorkerStarted,
        WorkerStopped,
    )
}

_ENCODER: Final = msgspec.json.Encoder()


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one run."""

    reaction: bytes
    places: tuple[Place, ...]  # where another fault could have struck, in order
    struck: bool  # every planned fault struck
    findings: tuple[Finding, ...]
    doubt: str | None  # why the run proves nothing, if so; a fault that did not strike is no doubt

    def passes_again(self, endpoint: Endpoint, after: Place) -> bool:
        """Whether the run came by this endpoint once more after a place."""
        return any(each.endpoint is endpoint and each.order > after.order for each in reversed(self.places))


class _Watch:
    """Notes every place that a run passes while faults may strike."""

    def __init__(self, simulation: Simulation) -> None:
        self.places: list[Place] = []
        self.in_hand = b""
        self._simulation = simulation
        self._boundary = simulation.course.boundary
        self._is_open = True
        self._boundary.plan.when_begun(self._begun)
        self._boundary.plan.when_healed(self._healed)

    def _begun(self, endpoint: Endpoint, occurrence: int, worker: str | None) -> None:
        if self._is_open:
            self.places.append(Place(len(self.places), endpoint, occurrence, self._simulation.now, worker))

    def _healed(self) -> None:
        if self._is_open:
            self._is_open = False
            self.in_hand = self._boundary.fingerprint()


def attempt(scenario: Scenario, factory: Factory, seed: int) -> Attempt:
    """Make one run."""
    with Simulation(scenario, factory, seed=seed) as simulation:
        watch = _Watch(simulation)
        simulation.follow_story()
        result = simulation.conclude("")
        crashed = simulation.judge.crashed
        doubt = simulation.trouble or next((f"the rule {rule} crashed: {error}" for rule, error in crashed), None)
        return Attempt(
            reaction=_reaction(result.history, watch.in_hand),
            places=tuple(watch.places),
            struck=result.outcome.faults_struck == result.outcome.faults_planned,
            findings=result.outcome.findings,
            doubt=doubt,
        )


def _reaction(history: History, in_hand: bytes) -> bytes:
    said: list[Any] = []
    jobs: list[str] = []
    for entry in history:
        fact = entry.fact
        fields = _SAID.get(type(fact))
        if fields is not None:
            said.append((type(fact).__name__, entry.at, [getattr(fact, field) for field in fields]))
            if isinstance(fact, JobCreated):
                jobs.append(fact.job)
    text = _ENCODER.encode(said)
    for number, job in enumerate(jobs):
        text = text.replace(job.encode(), b"job %d" % number)  # ids are drawn, and how much was drawn before may differ
    return hashlib.sha256(text + in_hand).digest()[:16]


# -- many


class Crew:
    """Makes attempts: here, or in several processes. Results come in the order of the tasks, whoever makes them."""

    def __init__(self, stories: tuple[Scenario, ...], factory: Factory, seed: int | None) -> None:
        self._stories = stories
        self._factory = factory
        self._seed = seed

    def one(self, task: Task) -> Attempt:
        """Make one run, in this process."""
        number, placements = task
        return self._attempt(stage(self._stories[number], placements))

    def play(self, scenario: Scenario) -> tuple[Finding, ...]:
        """Run a scenario in this process, and return what is found in it."""
        return self._attempt(scenario).findings

    def _attempt(self, scenario: Scenario) -> Attempt:
        return attempt(scenario, self._factory, scenario.seed if self._seed is None else self._seed)

    def all(self, tasks: Iterable[Task]) -> Iterator[Attempt]:
        """Make every run."""
        return map(self.one, tasks)


class _ManyHands(Crew):
    """A crew in processes of its own."""

    def __init__(
        self, pool: ProcessPoolExecutor, stories: tuple[Scenario, ...], factory: Factory, seed: int | None
    ) -> None:
        super().__init__(stories, factory, seed)
        self._pool = pool

    def all(self, tasks: Iterable[Task]) -> Iterator[Attempt]:
        return self._pool.map(_make, tasks, chunksize=_TASKS_AT_ONCE)


@contextmanager
def crew(subject: Subject, stories: tuple[Scenario, ...], *, seed: int | None, cores: int | None) -> Iterator[Crew]:
    """Gather a crew.

    Args:
        subject: one with a factory. Where it is to be made in other processes, it is found there by its name.
        seed: what randomness starts from; each story's own if None.
        cores: processes to use; all there are if None. With 1, the runs are made here.
    """
    assert subject.factory is not None
    hands = cores or os.cpu_count() or 1
    if hands == 1:
        yield Crew(stories, subject.factory, seed)
        return
    # Spawned, not forked: the caller may have threads, such as the one that draws a progress bar.
    pool = ProcessPoolExecutor(
        hands, mp_context=get_context("spawn"), initializer=_enlist, initargs=(subject.name, stories, seed)
    )
    try:
        yield _ManyHands(pool, stories, subject.factory, seed)
    finally:
        pool.shutdown(cancel_futures=True)


_crew: Crew | None = None


def _enlist(subject: str, stories: tuple[Scenario, ...], seed: int | None) -> None:
    """Make this process a member of a crew."""
    global _crew  # noqa: PLW0603  what a pool's initializer makes has no other place
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever interrupts the sweep interrupts its first process
    factory = resolve(subject).factory
    assert factory is not None
    _crew = Crew(stories, factory, seed)


def _make(task: Task) -> Attempt:
    assert _crew is not None
    return _crew.one(task)
