"""Many worker processes on one store, killed and frozen at random: every operation ends right, and its job is the only
one.

A seeded driver strikes at facts of the provider (the n-th request, the n-th answer …), so that what happens depends on
how far the work has come and not on how fast the machine is.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from fake_provider.boundary import Boundary
from fake_provider.clock import SystemClock
from fake_provider.contract import Contract, RetryAfter, Status
from fake_provider.engine import Engine
from fake_provider.facts import AnswerEnded, Endpoint, JobCreated, ProviderFact, RequestSent
from fake_provider.faults import AnyFault
from fake_provider.server import Server
from fake_provider.work import Work
from harness.garbage import heap_set_aside
from reference_client import audit
from reference_client.assembly import workflow_for
from reference_client.config import Terms, Timing
from reference_client.operation import Call
from reference_client.stores.opening import open_store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fake_provider.books import LedgerLine
    from fake_provider.engine import Attempt
    from reference_client.operation import HistoryEntry, Operation

SEED = 3
LIMIT_S = 300
"""A stuck run ends here; a good one takes a tenth of it on an idle machine."""

CONTRACT = Contract(status=Status(retry_after=RetryAfter.NONE))
TIMING = Timing(
    request_timeout_s=1.5,
    poll_first_s=0.3,
    poll_cap_s=1,
    lease_s=2,
    create_deadline_s=LIMIT_S,
    result_deadline_s=LIMIT_S,
    cancel_deadline_s=LIMIT_S,
)
MEMORY = Path("/dev/shm")  # noqa: S108  a temporary directory is made in it
"""Where there is one, SQLite's file lives in memory: processes die here, and the machine does not."""

STATUS_TAKES_S = 0.5
WAKING_S = 0.5
"""Longer than the first wait between polls: who takes an operation over too early polls while it is being polled."""


@dataclass(frozen=True)
class Plan:
    """What is to be done, by how many, and how often they are struck."""

    workers: int
    operations: int
    strikes: int

    def names(self) -> list[str]:
        return [f"op-{number}" for number in range(self.operations)]

    def work(self) -> dict[str, Work]:
        works = {"default": Work(takes_s=1, records=3, failed_items=1)}
        for name in self.names()[::10]:
            works[name] = Work(takes_s=1, outcome="failed")
        return works

    def faults(self) -> Sequence[Any]:
        """The answer of every twentieth create is lost, and each status read takes its time."""
        lost = [{"kind": "answer_lost", "at": f"create#1:committed@{name}"} for name in self.names()[5::20]]
        slow = {
            "kind": "slow_answer",
            "at": "status#*:received",
            "seconds": STATUS_TAKES_S,
            "times": "until_healed",
        }
        return TypeAdapter(tuple[AnyFault, ...]).validate_python([*lost, slow])


class Fleet:
    """The worker processes, by name. A killed one is replaced at once."""

    def __init__(self, folder: Path, store: str) -> None:
        self._folder = folder
        self._store = store
        self._settings: dict[str, Path] = {}
        self._processes: dict[str, asyncio.subprocess.Process] = {}
        self._frozen: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.ended: list[int] = []

    @property
    def names(self) -> list[str]:
        return sorted(self._settings)

    async def add(self, name: str, base_url: str) -> None:
        path = self._folder / f"{name}.json"
        settings = {
            "base_url": base_url,
            "credential": "env:JOBS_AUTHORIZATION",
            "store": self._store,
            "timing": {each: getattr(TIMING, each) for each in TIMING.__struct_fields__},
        }
        path.write_text(json.dumps(settings), encoding="utf-8")
        self._settings[name] = path
        await self._start(name)

    async def _start(self, name: str) -> None:
        with (self._folder / f"{name}.log").open("ab") as log:
            self._processes[name] = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "reference_client", "work", "--settings", str(self._settings[name])),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "JOBS_AUTHORIZATION": "Bearer one-of-many"},
            )

    def is_running(self, name: str) -> bool:
        return name in self._processes and name not in self._frozen

    def kill(self, name: str) -> None:
        """Kill as a crash does, and start another in its place."""
        process = self._processes.pop(name)
        process.kill()
        task = asyncio.create_task(self._replace(name, process))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _replace(self, name: str, killed: asyncio.subprocess.Process) -> None:
        assert await killed.wait() == -signal.SIGKILL, self.log(name)
        await self._start(name)

    def stop(self, name: str, for_s: float | None) -> None:
        process = self._processes[name]
        process.send_signal(signal.SIGSTOP)
        self._frozen.add(name)
        asyncio.get_running_loop().call_later(for_s or 0, self._resume, name, process)

    def set_clock(self, name: str, ahead_s: float) -> None:
        raise AssertionError(f"{name} has the clock of the machine")

    def _resume(self, name: str, process: asyncio.subprocess.Process) -> None:
        if process is self._processes.get(name) and name in self._frozen:
            process.send_signal(signal.SIGCONT)
            self._frozen.discard(name)

    def check(self) -> None:
        """Nobody ends by himself."""
        gone = [name for name, process in self._processes.items() if process.returncode is not None]
        assert not gone, [self.log(name) for name in gone]

    async def end(self) -> None:
        """End all in good order."""
        await asyncio.gather(*self._tasks)
        for name, process in self._processes.items():
            self._resume(name, process)
            process.terminate()
        self.ended = [await process.wait() for process in self._processes.values()]

    async def clear(self) -> None:
        """Leave nothing behind, whatever happened."""
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for process in self._processes.values():
            if process.returncode is None:
                process.kill()
                await process.wait()

    def log(self, name: str) -> str:
        return (self._folder / f"{name}.log").read_text(encoding="utf-8")


class Driver:
    """Takes the provider's facts, and strikes at some of them."""

    def __init__(self, plan: Plan, fleet: Fleet, clock: SystemClock) -> None:
        self._random = Random(SEED)
        facts_at_least = 10 * plan.operations  # the last strikes fall well before the end
        self._moments = sorted(self._random.sample(range(plan.operations // 2, facts_at_least), plan.strikes))
        self._fleet = fleet
        self._clock = clock
        self.facts: list[tuple[float, ProviderFact]] = []
        self.strikes: list[str] = []
        self.late_wakes: list[float] = []

    def record(self, fact: ProviderFact) -> None:
        self.facts.append((self._clock.now(), fact))
        if self._moments and len(self.facts) >= self._moments[0]:
            victim = self._random.choice(self._fleet.names)
            if self._fleet.is_running(victim):
                self._moments.pop(0)
                self._strike(victim, type(fact).__name__)

    def _strike(self, victim: str, moment: str) -> None:
        if self._random.random() < 0.5:
            self.strikes.append(f"{victim} killed at {moment}")
            self._fleet.kill(victim)
        else:
            for_s = self._random.choice([0.1, 0.5, 2 * TIMING.call_lease_s])
            self.strikes.append(f"{victim} stopped for {for_s:g} s at {moment}")
            if for_s > TIMING.call_lease_s:
                self.late_wakes.append(self._clock.now() + for_s)
            self._fleet.stop(victim, for_s)


@dataclass(frozen=True)
class Outcome:
    operations: dict[str, Operation]
    histories: dict[str, Sequence[HistoryEntry]]
    trail: audit.Verdict
    ledger: Sequence[LedgerLine]
    facts: Sequence[tuple[float, ProviderFact]]
    strikes: Sequence[str]
    late_wakes: Sequence[float]  # of workers that were frozen for longer than a lease
    ended: Sequence[int]


async def nowhere(_: Attempt) -> int | None:
    """Nobody takes webhooks here."""
    return None


async def play(plan: Plan, folder: Path, address: str) -> Outcome:
    """Submit everything, let the fleet work under the driver's strikes until all rests, and look at what is there."""
    clock, store = SystemClock(), open_store(address)
    fleet = Fleet(folder, address)
    driver = Driver(plan, fleet, clock)
    boundary = Boundary(
        CONTRACT,
        base_url="http://127.0.0.1",
        random=Random(SEED),
        record=driver.record,
        work=plan.work(),
        faults=plan.faults(),
    )
    engine = Engine(boundary, clock, hosts=fleet, deliver=nowhere)
    server = Server(engine)
    engine.start()
    try:
        async with asyncio.timeout(LIMIT_S):
            base_url = await server.open_port("fleet")
            workflow = workflow_for("jobs", terms=Terms(), timing=TIMING)
            for name in plan.names():
                now = await store.now()
                request = {"kind": "report", "client_reference": name, "parameters": {}}
                await store.add(
                    workflow.open(name, request, target=base_url, authorised_by="test", actor="test", now=now)
                )
            for number in range(plan.workers):
                await fleet.add(f"w{number}", base_url)
            # What other processes write tells nobody here.
            while await store.due_in_s() is not None:
                fleet.check()
                await asyncio.sleep(0.2)
            await fleet.end()
        return Outcome(
            operations={each.operation_id: each for each in await store.operations()},
            histories={name: await store.history(name) for name in plan.names()},
            trail=audit.verify(await store.links(), standing=await store.standing()),
            ledger=boundary.provider.ledger(clock.now()),
            facts=driver.facts,
            strikes=driver.strikes,
            late_wakes=driver.late_wakes,
            ended=fleet.ended,
        )
    finally:
        await fleet.clear()
        await server.close()
        await engine.close()
        await store.close()


def overlaps(facts: Sequence[tuple[float, ProviderFact]], late_wakes: Sequence[float]) -> list[str]:
    """Find polls of one job that were at the provider at the same time.

    One that is still there after the time that a status read takes is not counted: the provider stood still, and the
    client has long given it up. Nor is one that comes when a worker has just been woken up that was frozen for longer
    than its lease: between the look at the lease and the call lies a moment in which it may have been frozen, and then
    it calls before it looks again.
    """
    polling: dict[str, dict[int, float]] = defaultdict(dict)
    jobs: dict[int, str] = {}
    found = []
    for at, fact in facts:
        if isinstance(fact, RequestSent) and fact.endpoint is Endpoint.STATUS and fact.job is not None:
            is_overlap = any(at - since < STATUS_TAKES_S for since in polling[fact.job].values())
            if is_overlap and not any(0 <= at - woken_at < WAKING_S for woken_at in late_wakes):
                found.append(f"{fact.job} is polled while it is being polled")
            jobs[fact.exchange] = fact.job
            polling[fact.job][fact.exchange] = at
        elif isinstance(fact, AnswerEnded) and fact.exchange in jobs:
            polling[jobs[fact.exchange]].pop(fact.exchange, None)
    return found


def is_orderly(history: Sequence[HistoryEntry]) -> bool:
    """Tell whether each call's intent is followed by its outcome, before the next intent."""
    under_way: Call | None = None
    for entry in history:
        if entry.begins is not None:
            if under_way is not None:
                return False
            under_way = entry.begins
        elif entry.ends is not None:
            if entry.ends is not under_way:
                return False
            under_way = None
    return under_way is None


def takeovers_s(history: Sequence[HistoryEntry]) -> list[float]:
    """Return for each call that was found interrupted how long after its intent that was."""
    took = []
    begun_at = 0.0
    for entry in history:
        if entry.begins is not None:
            begun_at = entry.at
        elif entry.facts.get("error") == "interrupted":
            took.append(entry.at - begun_at)
    return took


def check(plan: Plan, outcome: Outcome) -> None:
    told = "\n".join(outcome.strikes)
    assert len(outcome.strikes) == plan.strikes, told
    assert {"killed", "stopped"} <= {strike.split()[1] for strike in outcome.strikes}

    created = Counter(fact.operation for _, fact in outcome.facts if isinstance(fact, JobCreated))
    assert created == Counter(plan.names()), told
    assert [line.operation for line in outcome.ledger if line.operation not in created] == []

    failing = set(plan.names()[::10])
    for line in outcome.ledger:
        operation = outcome.operations[str(line.operation)]
        assert operation.state == ("failed" if line.operation in failing else "succeeded"), (operation, told)
        assert operation.state == line.state
        assert operation.remote_job_id == line.job
        if operation.state == "succeeded":
            assert operation.collected is not None
            kept = operation.collected
            assert (kept.sha256, kept.records, kept.failed_items) == (line.result_sha256, line.records, 1)

    assert overlaps(outcome.facts, outcome.late_wakes) == [], told
    assert [name for name, history in outcome.histories.items() if not is_orderly(history)] == [], told
    assert outcome.trail.problem is None
    took = [seconds for history in outcome.histories.values() for seconds in takeovers_s(history)]
    assert took, "nobody was struck amid a call, so this proved nothing"
    assert min(took) >= TIMING.call_lease_s, "an operation was taken over before its lease had expired"
    # One that was started a moment ago may not have got as far as to listen to the signal.
    assert set(outcome.ended) <= {0, -signal.SIGTERM}


def test_eight_processes_on_one_postgresql_are_killed_and_frozen_at_random(postgres_url: str, tmp_path: Path) -> None:
    plan = Plan(workers=8, operations=500, strikes=24)
    with heap_set_aside():
        outcome = asyncio.run(play(plan, tmp_path, postgres_url))
    check(plan, outcome)


def test_four_processes_on_one_sqlite_file_are_killed_and_frozen_at_random(tmp_path: Path) -> None:
    plan = Plan(workers=4, operations=200, strikes=12)
    with TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder, heap_set_aside():
        outcome = asyncio.run(play(plan, tmp_path, f"sqlite:///{folder}/operations.sqlite"))
    check(plan, outcome)
