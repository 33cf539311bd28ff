"""One run of a sweep, boiled down: what it passed, how the client took it, which rules broke. And a crew to make many.

The *reaction* of a run is a digest of everything the client did: its requests, durable writes, leases and claims, each
at its instant, with what became of the jobs, and of all that the provider had in hand when the faults were healed. What
the client was told is not in it. Where two faults at one moment call forth the same reaction, the client and the world
went on from the same state.

The *situation* at a place is a digest of all that decides what follows there, if the client says what it will go on
from. The same fault in the same situation is followed by the same, unless a deadline passes meanwhile.
"""

import gc
import hashlib
import math
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any, Final

import msgspec

from fake_provider.facts import Endpoint
from fake_provider.faults import Course
from harness.explore.placements import Place, Placement, Treatment, chances, stage
from harness.explore.reactions import Sequel, clock_jumped, midst, quiet_from, reaction, sequel, without_ids
from harness.garbage import heap_set_aside
from harness.history import History, RunEnded
from harness.interrupts import interrupts_ignored
from harness.subject import Factory
from harness.subjects.resolve import Subject, resolve
from harness.verdict import Finding
from harness.virtual_time import Simulation, WorldOutlook
from scenarios.model import Scenario

__all__ = ["Aftermath", "Attempt", "Crew", "Situation", "Task", "aftermath", "attempt", "crew"]

Task = tuple[int, tuple[Placement, ...]]
"""Which story, and the faults to put into it."""

_TASKS_AT_ONCE: Final = 16
"""Sent to a process together: enough for sending to cost little, few enough for the bar to move."""


class Situation(msgspec.Struct, frozen=True):
    """What a run had come to at a place. What the clock alone will change, each in so many seconds, is in a fixed order
    that the digest stands for.
    """

    digest: bytes
    ends: tuple[float, ...]  # deadlines of the clients
    dues: tuple[float, ...]  # what happens at the provider without anyone calling


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one run."""

    reaction: bytes
    places: tuple[Place, ...]  # where another fault could have struck, in order
    situations: tuple[Situation | None, ...]  # at the places; None where none was asked for, or the client is mute
    chances: tuple[int, ...]  # at the places: what would find something to strike (see ``placements``), if asked
    struck: bool  # every planned fault struck
    quiet_from: float  # seconds since the start: nothing was done from there on; never, if the run broke off
    ended: float  # the same: when all was over
    clock_jumped: float | None  # the same: when a worker's clock was last set wrong, if it was
    findings: tuple[Finding, ...]
    doubt: str | None  # why the run proves nothing, if so; a fault that did not strike is no doubt

    def passes_again(self, endpoint: Endpoint, after: Place) -> bool:
        """Whether the run came by this endpoint once more after a place."""
        return any(each.endpoint is endpoint and each.order > after.order for each in reversed(self.places))

    def situation_at(self, place: Place) -> Situation | None:
        return self.situations[place.order] if self.situations else None

    def finds(self, treatment: Treatment, place: Place) -> bool:
        """Whether one more fault would find something to strike at a place, after those of this run."""
        return bool(self.chances[place.order] >> treatment.rank & 1)


class Aftermath(msgspec.Struct, frozen=True):
    """What followed from a place on, where randomness was started anew, and which rules broke."""

    sequel: Sequel
    findings: tuple[Finding, ...]


class _Moment(msgspec.Struct):
    """A place as it is passed."""

    facts: int  # how many there were
    outlook: WorldOutlook | None
    then: WorldOutlook | None = None  # at a durable write: when the worker has made it


class _Watch:
    """Notes every place that a run passes while faults may strike.

    Args:
        looks: whether to ask at each place what everything will go on from.
        tries: whether to ask at each place which faults would find something to strike.
        asks_from: the first place at which to ask either.
        restarts_at: the place at which to start randomness anew.
    """

    def __init__(
        self,
        simulation: Simulation,
        *,
        looks: bool = False,
        tries: bool = False,
        asks_from: int = 0,
        restarts_at: int | None = None,
    ) -> None:
        self.places: list[Place] = []
        self.moments: list[_Moment] = []
        self.chances: list[int] = []
        self.in_hand = b""
        self.trouble: str | None = None
        self._looks = looks
        self._asks_from = asks_from
        self._restarts_at = restarts_at
        self._simulation = simulation
        self._boundary = simulation.course.boundary
        self._is_open = True
        self._boundary.plan.when_begun(self._begun)
        self._boundary.plan.when_healed(self._healed)
        if tries:
            self._boundary.plan.when_passed(self._passed)
        self._writing: dict[str | None, _Moment] = {}  # by worker: the write that it is about to make
        if looks:
            simulation.loop.before_time_passes(self._instant_ends)

    def _begun(self, endpoint: Endpoint, occurrence: int, worker: str | None) -> None:
        if not self._is_open:
            return
        simulation, order = self._simulation, len(self.places)
        self.places.append(Place(order, endpoint, occurrence, simulation.now, worker))
        self.chances.append(0)
        plan = self._boundary.plan
        # Of a fault that is still to strike, in an exchange under way, no outlook tells.
        looks = self._looks and order >= self._asks_from and plan.struck == plan.planned
        outlook = self._outlook() if looks else None
        moment = _Moment(len(simulation.history), outlook)
        self.moments.append(moment)
        if worker in self._writing:
            self._writing.pop(worker).then = outlook
        if endpoint is Endpoint.STORE and looks:
            self._writing[worker] = moment
        if order == self._restarts_at:
            simulation.restart_randomness()

    def _passed(self, number: int, course: Course) -> None:
        if self._is_open and number >= self._asks_from:
            self.chances[number] |= chances(course)

    def _instant_ends(self) -> None:
        if self._writing:
            outlook = self._outlook()
            for moment in self._writing.values():
                moment.then = outlook
            self._writing.clear()

    def _outlook(self) -> WorldOutlook | None:
        # We may be inside the client's own code: what its outlook raises must not be taken for what it was doing.
        try:
            return self._simulation.outlook()
        except Exception as error:  # noqa: BLE001  the client is foreign code: anything may come
            self.trouble = f"outlook() raised {type(error).__name__}: {error}"
            return None

    def _healed(self) -> None:
        if self._is_open:
            self._is_open = False
            self.in_hand = self._boundary.fingerprint()

    def situations(self, history: History) -> tuple[Situation | None, ...]:
        """What the run had come to at each place."""
        return tuple(_situation(*each, history) for each in zip(self.places, self.moments, strict=True))


def attempt(
    scenario: Scenario, factory: Factory, seed: int, *, looks: bool = False, tries: bool = False, asks_from: int = 0
) -> Attempt:
    """Make one run.

    Args:
        looks: whether to find out its situations.
        tries: whether to find out what one more fault would find to strike.
        asks_from: the first place of which either is asked.
    """
    with Simulation(scenario, factory, seed=seed) as simulation:
        watch = _Watch(simulation, looks=looks, tries=tries, asks_from=asks_from)
        simulation.follow_story()
        result = simulation.conclude("")
        crashed = simulation.judge.crashed
        trouble = simulation.trouble or watch.trouble
        doubt = trouble or next((f"the rule {rule} crashed: {error}" for rule, error in crashed), None)
        last = result.history[-1]
        is_whole = isinstance(last.fact, RunEnded)
        return Attempt(
            reaction=reaction(result.history, watch.in_hand),
            places=tuple(watch.places),
            situations=watch.situations(result.history) if looks else (),
            chances=tuple(watch.chances) if tries else (),
            struck=result.outcome.faults_struck == result.outcome.faults_planned,
            quiet_from=quiet_from(result.history) if is_whole else math.inf,
            ended=last.at if is_whole else math.inf,
            clock_jumped=clock_jumped(result.history),
            findings=result.outcome.findings,
            doubt=doubt,
        )


def aftermath(scenario: Scenario, factory: Factory, seed: int, place: Place) -> Aftermath:
    """Make one run, and tell what followed from a place on."""
    with Simulation(scenario, factory, seed=seed) as simulation:
        watch = _Watch(simulation, restarts_at=place.order)
        simulation.follow_story()
        result = simulation.conclude("")
        since = watch.moments[place.order].facts
        return Aftermath(sequel(result.history, since, watch.places[place.order].at), result.outcome.findings)


def _situation(place: Place, moment: _Moment, history: History) -> Situation | None:
    if moment.outlook is None:
        return None
    ends, dues = sorted(moment.outlook.ends.items()), sorted(moment.outlook.dues.items())
    under_way = midst(history, moment.facts, place.at)
    if under_way is None:
        return None
    then = moment.then and moment.then.state
    to_come = [name for name, _ in ends], [name for name, _ in dues]
    told = (place.endpoint, place.worker, moment.outlook.state, then, under_way, to_come)
    digest = hashlib.sha256(without_ids(told)).digest()[:16]
    return Situation(digest, tuple(in_s for _, in_s in ends), tuple(in_s for _, in_s in dues))


# -- many


class Crew:
    """Makes attempts: here, or in several processes. Results come in the order of the tasks, whoever makes them.

    Args:
        deepest: the most faults in one run. One that has fewer is asked what one more would find to strike.
        looks: whether it is asked for its situations, too.
    """

    def __init__(
        self, stories: tuple[Scenario, ...], factory: Factory, seed: int | None, deepest: int, *, looks: bool
    ) -> None:
        self._stories = stories
        self._factory = factory
        self._seed = seed
        self._deepest = deepest
        self._looks = looks

    def one(self, task: Task) -> Attempt:
        """Make one run, in this process."""
        number, placements = task
        scenario = stage(self._stories[number], placements)
        goes_on = len(placements) < self._deepest
        return attempt(
            scenario,
            self._factory,
            self._seed_of(scenario),
            looks=self._looks and goes_on,
            tries=goes_on,
            asks_from=placements[-1].place.order if placements else 0,  # no fault is put before another one
        )

    def aftermath(self, task: Task) -> Aftermath:
        """Make one run, in this process, and tell what followed from the place of its last fault on."""
        number, placements = task
        scenario = stage(self._stories[number], placements)
        return aftermath(scenario, self._factory, self._seed_of(scenario), placements[-1].place)

    def play(self, scenario: Scenario) -> tuple[Finding, ...]:
        """Run a scenario in this process, and return what is found in it."""
        return attempt(scenario, self._factory, self._seed_of(scenario)).findings

    def _seed_of(self, scenario: Scenario) -> int:
        return scenario.seed if self._seed is None else self._seed

    def all(self, tasks: Iterable[Task]) -> Iterator[Attempt]:
        """Make every run."""
        return map(self.one, tasks)

    def aftermaths(self, tasks: Iterable[Task]) -> Iterator[Aftermath]:
        """Make every run, and tell what followed from the place of its last fault on."""
        return map(self.aftermath, tasks)


class _ManyHands(Crew):
    """A crew in processes of its own, each of which has one like it."""

    def __init__(self, pool: ProcessPoolExecutor, *made_with: Any, looks: bool) -> None:
        super().__init__(*made_with, looks=looks)
        self._pool = pool

    def all(self, tasks: Iterable[Task]) -> Iterator[Attempt]:
        return self._pool.map(_make, tasks, chunksize=_TASKS_AT_ONCE)

    def aftermaths(self, tasks: Iterable[Task]) -> Iterator[Aftermath]:
        return self._pool.map(_make_aftermath, tasks, chunksize=_TASKS_AT_ONCE)


@contextmanager
def crew(
    subject: Subject,
    stories: tuple[Scenario, ...],
    *,
    seed: int | None,
    cores: int | None,
    deepest: int,
    looks: bool,
) -> Iterator[Crew]:
    """Gather a crew.

    Args:
        subject: one with a factory. Where it is to be made in other processes, it is found there by its name.
        seed: what randomness starts from; each story's own if None.
        cores: processes to use; all there are if None. With 1, the runs are made here.
        deepest: the most faults in one run. One that has fewer is asked what one more would find to strike.
        looks: whether it is asked for its situations, too.
    """
    assert subject.factory is not None
    hands = cores or os.cpu_count() or 1
    if hands == 1:
        with heap_set_aside():
            yield Crew(stories, subject.factory, seed, deepest, looks=looks)
        return
    # Spawned, not forked: the caller may have threads, such as the one that draws a progress bar.
    pool = ProcessPoolExecutor(
        hands,
        mp_context=get_context("spawn"),
        initializer=_enlist,
        initargs=(subject.name, stories, seed, deepest, looks),
    )
    try:
        with interrupts_ignored():  # whoever interrupts the sweep interrupts its first process
            for _ in range(hands):
                pool.submit(_be_there)  # starts a process, as long as none is idle
        yield _ManyHands(pool, stories, subject.factory, seed, deepest, looks=looks)
    finally:
        pool.shutdown(cancel_futures=True)


_crew: Crew | None = None


def _enlist(subject: str, stories: tuple[Scenario, ...], seed: int | None, deepest: int, looks: bool) -> None:
    """Make this process a member of a crew."""
    global _crew  # noqa: PLW0603  what a pool's initializer makes has no other place
    factory = resolve(subject).factory
    assert factory is not None
    _crew = Crew(stories, factory, seed, deepest, looks=looks)
    gc.freeze()  # for good: this process makes runs and nothing else


def _be_there() -> None:
    """Nothing to do yet."""


def _make(task: Task) -> Attempt:
    assert _crew is not None
    return _crew.one(task)


def _make_aftermath(task: Task) -> Aftermath:
    assert _crew is not None
    return _crew.aftermath(task)
