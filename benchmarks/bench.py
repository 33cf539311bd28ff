"""What is fast, measured as ratios within one run. ``make bench`` runs all; name some to run only those.

Processor time is measured where one process does the work, so that other programs disturb little; the pairs, which
several processes share, are measured by the clock.
"""

import sys
import time
from collections.abc import Callable

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RULE_MARKER, RuleBasedStateMachine, rule, run_state_machine_as_test

from harness.explore.machine import explore, machine_for
from harness.explore.sweep import CORE, sweep
from harness.runner import run
from harness.subjects import resolve
from harness.subjects.reference import build
from scenarios.loading import find
from scenarios.model import Scenario, Submit

EXAMPLES, STEPS = 100, 30
LIFECYCLES = 300


def cpu(work: Callable[[], object]) -> float:
    """Processor seconds of this process for ``work``."""
    began = time.process_time()
    work()
    return time.process_time() - began


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
    ours_s = cpu(lambda: ours.append(explore(resolve(), examples=EXAMPLES, steps=STEPS, seed=1)))
    bare, full = done / empty_s, ours[0].steps / ours_s
    print(
        f"machine: {full:.0f} steps/s; empty with {count} rules {bare:.0f} steps/s; ratio {full / bare:.3f} (aim 0.25)"
    )


def lifecycles() -> None:
    """Whole lives of one operation: client, store, provider, history, all rules."""
    subject, scenario = resolve(), find("happy-path")
    run(scenario, subject)
    best = min(cpu(lambda: [run(scenario, subject) for _ in range(LIFECYCLES // 3)]) for _ in range(3))
    print(f"lifecycles: {LIFECYCLES / 3 / best:.0f} a second on one core (aim 500)")


def operations() -> None:
    """What an operation costs among many, in one run, over what it costs among few."""
    costs = {}
    for count in (100, 10_000):
        steps = tuple(Submit(at=number / 10, operation=f"op-{number}") for number in range(count))
        scenario = Scenario(name="many", summary="Many operations in one run.", steps=steps)
        costs[count] = cpu(lambda scenario=scenario: run(scenario, resolve())) / count * 1e3
        print(f"operations: {costs[count]:.2f} ms each, {count} in one run")
    print(f"operations: ratio {costs[10_000] / costs[100]:.2f} (aim at most 1.2)")


def pairs() -> None:
    """Every pair of faults in the core scenarios."""
    found = sweep(resolve(), [find(name) for name in CORE], faults=2)
    for story in found.stories:
        print(
            f"pairs: {story.scenario}: {story.placements} placements, {story.pruned} pruned ({story.same_reaction} by "
            f"reaction, {story.same_situation} by situation, {story.audited} audited), {story.runs_made} runs"
        )
    runs = sum(story.runs_made for story in found.stories)
    print(f"pairs: {found.verdict}, {runs} runs in {found.seconds:.0f} s (aim under 60 s on 2 cores)")


BENCHMARKS = {each.__name__: each for each in (machine, lifecycles, operations, pairs)}

if __name__ == "__main__":
    for name in sys.argv[1:] or BENCHMARKS:
        BENCHMARKS[name]()
