"""What is fast, measured as ratios within one run. ``make bench`` runs all; name some to run only those.

Processor time is measured where one process does the work, so that other programs disturb little; the pairs, which
several processes share, are measured by the clock.
"""

import asyncio
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import httpx2
import msgspec
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RULE_MARKER, RuleBasedStateMachine, rule, run_state_machine_as_test

from fake_provider.facts import RequestSent
from harness.explore.exploration import explore
from harness.explore.machine import machine_for
from harness.explore.model import Bounds, explore_all
from harness.explore.sweep import CORE, sweep
from harness.runner import run
from harness.simulation import SimulationLoop
from harness.subjects import resolve
from harness.subjects.reference import build
from harness.virtual_time import Simulation
from reference_client.stores import sqlite_database
from reference_client.stores.sqlite import SQLiteStore
from scenarios.loading import find
from scenarios.model import Scenario, Submit

EXAMPLES, STEPS = 400, 30
LIFECYCLES = 300
TASKS = 20  # that a lifecycle starts


def cpu(work: Callable[[], object]) -> float:
    """Processor seconds of this process for ``work``."""
    began = time.process_time()
    work()
    return time.process_time() - began


@contextmanager
def inside(kind: type, *names: str) -> Iterator[list[float]]:
    """Time the calls of some methods, as long as one does not call another; give the processor seconds of each call."""
    took: list[float] = []
    plain = {name: vars(kind)[name] for name in names}

    def timed(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            began = time.process_time()
            try:
                return method(*args, **kwargs)
            finally:
                took.append(time.process_time() - began)

        return call

    for name, method in plain.items():
        setattr(kind, name, timed(method))
    try:
        yield took
    finally:
        for name, method in plain.items():
            setattr(kind, name, method)


def machine() -> None:
    """Steps a second with every rule judging, beside a machine that does nothing and has as many rules."""
    ours_is = machine_for(build)
    count = sum(hasattr(getattr(ours_is, name), RULE_MARKER) for name in dir(ours_is))
    done = 0

    def nothing(self: RuleBasedStateMachine, number: int) -> None:  # noqa: ARG001
        nonlocal done
        done += 1

    rules = {f"rule_{each}": rule(number=st.integers(0, 2))(nothing) for each in range(count)}
    empty = type("Empty", (RuleBasedStateMachine,), rules)
    options = settings(
        max_examples=EXAMPLES,
        stateful_step_count=STEPS,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    empty_s = cpu(lambda: run_state_machine_as_test(seed(1)(empty), settings=options))
    ours = []
    with inside(Simulation, "__init__", "start", "apply", "advance_to", "finish", "conclude", "__exit__") as simulated:
        ours_s = cpu(lambda: ours.append(explore(resolve(), examples=EXAMPLES, steps=STEPS, seed=1)))
    bare, full = done / empty_s, ours[0].steps / ours_s
    drawn = ours[0].steps / (ours_s - sum(simulated))
    print(
        f"machine: {full:.0f} steps/s; empty with {count} rules {bare:.0f} steps/s; ratio {full / bare:.3f} (aim 0.25)"
    )
    print(f"machine: without the time inside the simulation {drawn:.0f} steps/s; ratio {drawn / bare:.3f}")


def lifecycles() -> None:
    """Whole lives of one operation: client, store, provider, history, all rules."""
    subject, scenario = resolve(), find("happy-path")
    run(scenario, subject)
    best = min(cpu(lambda: [run(scenario, subject) for _ in range(LIFECYCLES // 3)]) for _ in range(3))
    print(f"lifecycles: {LIFECYCLES / 3 / best:.0f} a second on one core (aim 500)")


def floor() -> None:
    """What the packages alone take for the same life: its calls through httpx2, its statements through sqlite3, its
    tasks and timers through asyncio, its facts through msgspec; nothing of ours, and no rule.
    """
    scenario, subject = find("happy-path"), resolve()
    run(scenario, subject)
    statements: list[tuple[str, Any]] = []

    class Recording(sqlite3.Connection):
        def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
            statements.append((sql, parameters))
            return super().execute(sql, parameters)

    sqlite_database._IDLE.clear()  # noqa: SLF001  the run is to open one that can be listened to
    plain, sqlite3.connect = sqlite3.connect, partial(sqlite3.connect, factory=Recording)  # type: ignore[assignment]
    try:
        history = run(scenario, subject).history
    finally:
        sqlite3.connect = plain
    made = max(number for number, (sql, _) in enumerate(statements) if sql == "BEGIN")
    calls = sum(isinstance(entry.fact, RequestSent) for entry in history)
    encoder = msgspec.json.Encoder()
    store = SQLiteStore(":memory:")
    database = store._db  # noqa: SLF001  finished and empty
    database.execute("ROLLBACK")

    def write() -> None:
        for sql, parameters in statements[made:]:
            database.execute(sql, parameters).fetchall()
        database.execute("ROLLBACK")

    async def call() -> None:
        answer = httpx2.Response(200, json={"id": "job_0123456789abcdef", "status": "running", "progress": 50})
        transport = httpx2.MockTransport(lambda _: answer)
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            for _ in range(calls):
                (await client.post("/v1/jobs", json={"kind": "report"})).json()

    async def turn() -> None:
        for _ in range(TASKS):
            await asyncio.create_task(asyncio.sleep(0.1))

    def live() -> None:
        write()
        loop = SimulationLoop()
        loop.run_until_complete(call())
        loop.run_until_complete(turn())
        loop.close()
        for entry in history:
            encoder.encode(entry.fact)

    def best_ms(work: Callable[[], object]) -> float:
        count = LIFECYCLES // 3
        return min(cpu(lambda: [work() for _ in range(count)]) / count for _ in range(3)) * 1e3

    least, ours = best_ms(live), best_ms(lambda: run(scenario, subject))
    print(f"floor: {least:.2f} ms by the packages alone, {ours:.2f} ms for a lifecycle; ratio {ours / least:.1f}")


def operations() -> None:
    """What an operation costs among many, in one run, over what it costs among few."""
    costs = {}
    for count in (100, 10_000):
        steps = tuple(Submit(at=number / 10, operation=f"op-{number}") for number in range(count))
        scenario = Scenario(name="many", summary="Many operations in one run.", steps=steps)
        costs[count] = cpu(lambda scenario=scenario: run(scenario, resolve())) / count * 1e3
        print(f"operations: {costs[count]:.2f} ms each, {count} in one run")
    print(f"operations: ratio {costs[10_000] / costs[100]:.2f} (aim at most 1.2)")


def model() -> None:
    """Every order of the reference client's decisions, without and with a person who may say stop."""
    for stops in (0, 1):
        began = time.process_time()
        found = explore_all(Bounds(stops=stops))
        print(f"model: {stops} stops: {found.states} states in {time.process_time() - began:.1f} s of processor time")


def pairs() -> None:
    """Every pair of faults in the core scenarios."""
    found = sweep(resolve(), [find(name) for name in CORE], faults=2)
    for story in found.stories:
        print(
            f"pairs: {story.scenario}: {story.placements} placements, {story.pruned} pruned ({story.same_reaction} by "
            f"reaction, {story.same_situation} by situation, {story.nothing_to_strike} with nothing to strike, "
            f"{story.audited} audited), {story.runs_made} runs, {story.outcomes} outcomes"
        )
    runs, outcomes = (sum(getattr(story, name) for story in found.stories) for name in ("runs_made", "outcomes"))
    print(
        f"pairs: {found.verdict}, {runs} runs with {outcomes} outcomes in {found.seconds:.0f} s "
        "(aim under 60 s on 2 cores)"
    )


BENCHMARKS = {each.__name__: each for each in (machine, lifecycles, floor, operations, model, pairs)}

if __name__ == "__main__":
    for name in sys.argv[1:] or BENCHMARKS:
        BENCHMARKS[name]()
