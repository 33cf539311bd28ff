"""Many runs of the Hypothesis machine against one client: at random, then to what chance left out.

A run that breaks a rule is shrunk as a scenario, and the first one ends the exploration. What was visited is added up,
and an exploration that got around too little proves nothing.
"""

import shlex
import time
from collections.abc import Collection, Iterator
from itertools import chain, count, zip_longest
from pathlib import Path
from typing import Final

import msgspec
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.errors import FlakyFailure
from hypothesis.reporting import with_reporter
from hypothesis.stateful import run_state_machine_as_test

from fake_provider.contract import Contract
from fake_provider.faults import KINDS
from harness.explore import floors
from harness.explore.leads import Lead, leads, leads_to_kind
from harness.explore.machine import Machine, machine_for
from harness.explore.suite import RuleBroken, least
from harness.explore.tally import Tally
from harness.garbage import heap_set_aside
from harness.simulation import SimulationError
from harness.stage import SubjectError
from harness.subjects.resolve import Subject
from harness.verdict import Finding, Verdict, decide
from scenarios.dumping import write

__all__ = ["Exploration", "explore"]

CHUNK: Final = 10
"""Runs that Hypothesis is asked for at once. After so many it would make most runs from others by repeating parts of
them; to get around, new ones are worth more."""

_SEEDS_APART: Final = 1_000_003
"""So that explorations with neighbouring seeds have no chunk in common."""

DIRECTED: Final = 0.3
"""The share of the runs that go for what the others did not visit, as far as it can be told how to get there."""

MOST_LEADS: Final = 3
"""Leads to one place that are tried."""


class Exploration(msgspec.Struct, frozen=True, kw_only=True):
    """What an exploration came to."""

    verdict: Verdict
    reason: str
    examples: int
    steps: int
    seconds: float
    transitions_seen: dict[str, int]
    faults_struck_by_kind: dict[str, int]
    commit_points_struck: dict[str, int]
    contract_values_seen: dict[str, int]
    transitions_not_taken: tuple[str, ...]  # the client was led there, and went another way
    findings: tuple[Finding, ...]
    saved_scenario: str | None
    reproduce: str
    interrupted: bool = False


def explore(
    subject: Subject,
    *,
    examples: int,
    steps: int,
    seed: int,
    save: Path | None = None,
    contract: Contract | None = None,
    known: Collection[str] = (),
) -> Exploration:
    """Run the machine against a subject until a rule breaks, or ``examples`` runs have passed. An interrupt ends it,
    too, with what was visited until then.

    Args:
        examples: runs to make.
        steps: steps a run may have.
        seed: the same seed makes the same runs.
        save: a folder for the scenario file of a failure; made if absent.
        known: rules that are known to be broken: they are not judged, so that others come to light.

    Raises:
        SubjectError: the subject cannot be simulated.
        BadList: there is no such rule.
    """
    if subject.factory is None:
        raise SubjectError(f"{subject.name!r} cannot be explored: exploration needs a client that can be simulated")
    tally = Tally()
    began = time.perf_counter()
    interrupted = False
    with heap_set_aside():
        try:
            reason = _wander(subject, contract, tally, examples=examples, steps=steps, seed_=seed, known=known)
        except KeyboardInterrupt:
            interrupted, reason = True, f"interrupted after {tally.examples} of {examples} examples"
    seconds = time.perf_counter() - began
    findings: tuple[Finding, ...] = ()
    saved = None
    if tally.failure is not None:
        scenario, findings = least(*tally.failure, subject, known=known)
        if save is not None:
            saved = write(scenario, save)
    verdict, why = _verdict(tally, findings, reason, drawn=contract is None)
    if known:
        why = f"{why} (not judged, as they are known to be broken: {', '.join(sorted(known))})"
    words = ["jobsworth", "explore", subject.name, "--examples", str(examples), "--steps", str(steps)]
    words += ["--seed", str(seed), *(f"--known={rule}" for rule in known)]
    return Exploration(
        verdict=verdict,
        reason=why,
        examples=tally.examples,
        steps=tally.steps,
        seconds=round(seconds, 3),
        transitions_seen=dict(sorted(tally.transitions.items())),
        faults_struck_by_kind=dict(sorted(tally.faults.items())),
        commit_points_struck=dict(sorted(tally.commit_points.items())),
        contract_values_seen=dict(sorted(tally.contract_values.items())),
        transitions_not_taken=tuple(sorted(tally.led - tally.transitions.keys())),
        findings=findings,
        saved_scenario=str(saved) if saved else None,
        reproduce=shlex.join(words),
        interrupted=interrupted,
    )


def _wander(
    subject: Subject,
    contract: Contract | None,
    tally: Tally,
    *,
    examples: int,
    steps: int,
    seed_: int,
    known: Collection[str],
) -> str | None:
    """Explore at random, then go for what chance has left out; return why it broke off if not because of a rule."""
    directed = 0 if contract is not None else int(examples * DIRECTED)
    seeds = count(seed_ * _SEEDS_APART)

    def go(most: int, lead: Lead | None = None) -> str | None:
        machine = machine_for(subject, contract, tally=tally, run_seed=seed_, lead=lead, known=known)
        return _run(machine, examples=most, steps=steps, seed_=next(seeds))

    def wander(until: int) -> str | None:
        reason = None
        while reason is None and tally.failure is None and tally.examples < until:
            reason = go(min(CHUNK, until - tally.examples))
        return reason

    reason = wander(examples - directed)
    for lead in _leads_to(_missing(tally)):
        if reason is not None or tally.failure is not None or tally.examples >= examples or not directed:
            break
        tally.led.update(lead.edges)
        reason = go(1, lead)  # alone, a run is the simplest: the lead, and nothing to disturb it
    return reason or wander(examples)


def _missing(tally: Tally) -> set[str]:
    return {name for seen, expected in tally.visited().values() for name in expected if name not in seen}


def _leads_to(places: set[str]) -> Iterator[Lead]:
    """The leads to transitions and fault kinds, one for each at first, so that none is left out for another's sake."""
    to_edges = [[lead for lead in leads() if name in lead.edges] for name in sorted(places)]
    to_kinds = [leads_to_kind(name) for name in sorted(places) if name in KINDS]
    for rank in range(MOST_LEADS):
        for found in chain.from_iterable(zip_longest(to_kinds, to_edges, fillvalue=())):
            yield from found[rank : rank + 1]


def _run(machine: type[Machine], *, examples: int, steps: int, seed_: int) -> str | None:
    """Run the machine; return why it broke off if that was not because of a rule."""
    options = settings(
        max_examples=examples,
        stateful_step_count=steps,
        database=None,  # the seed alone decides what is run
        deadline=None,
        phases=(Phase.generate,),  # a failure is shrunk as a scenario: `harness.explore.shrink`
        report_multiple_bugs=False,
        print_blob=False,
        suppress_health_check=list(HealthCheck),
    )
    try:
        # Hypothesis would print the failing steps; the scenario says the same, and standard output may be promised to
        # JSON.
        with with_reporter(_say_nothing):
            run_state_machine_as_test(seed(seed_)(machine), settings=options)
    except RuleBroken:
        return None
    except FlakyFailure as error:
        return f"the subject does not behave the same twice: {error}"
    except SimulationError as error:
        return str(error)
    return None


def _say_nothing(_text: object) -> None:
    """Hypothesis's reporter while its words are not wanted."""


def _verdict(tally: Tally, findings: tuple[Finding, ...], broke_off: str | None, *, drawn: bool) -> tuple[Verdict, str]:
    doubts = []
    if broke_off:
        doubts.append(broke_off)
    doubts.extend(tally.doubts())
    if drawn and not findings and not broke_off:
        doubts.extend(floors.shortfalls(tally.examples, tally.visited()))
    return decide(findings=findings, doubts=doubts)
