"""The machine as a test case in someone's own suite: how it is run there, and how it fails.

Hypothesis's own settings, database, seed and statistics apply. What is added: a subject that cannot be put under test
fails before any run is made; a breach comes with the scenario that shows it; and runs that together prove nothing are
no pass. A machine here is one that ``harness.explore.machine.machine_for`` made, or a subclass of it.
"""

from collections.abc import Collection, Iterator
from functools import cache
from textwrap import indent
from typing import Any, Final
from unittest import TestCase

from hypothesis import Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from harness.explore import floors
from harness.explore.shrink import shrink
from harness.runner import run
from harness.subjects.resolve import Subject
from harness.verdict import Finding
from harness.virtual_time import simulated_capabilities
from scenarios.dumping import dump, write
from scenarios.model import Scenario

__all__ = ["NothingProved", "RuleBroken", "case_of", "least"]

SHARES: Final = ((200, 0.25), (50, 0.1))
"""From so many examples on, this share must have been visited. Hypothesis makes many runs from others by repeating
parts of them, and goes nowhere on purpose: half of the fault kinds are reached in two hundred. ``explore`` asks for
more."""


class RuleBroken(AssertionError):
    """A run of the machine in which rules were broken. Each rule has a subclass, so that shrinking keeps to the
    rule.
    """

    def __init__(self, findings: tuple[Finding, ...], scenario: Scenario) -> None:
        self.findings = findings
        self.scenario = scenario
        super().__init__(
            "\n".join(f"{finding.rule} ({finding.requirement}): {finding.message}" for finding in findings)
        )


class NothingProved(AssertionError):
    """No rule was broken, in runs whose silence means nothing: the verdict is unknown. The message says why."""


@cache
def case_of(machine: Any) -> type[TestCase]:
    """Return the test case of a machine: Hypothesis's own, which also says what was proved.

    Its test raises:
        RuleBroken: a rule is broken; in a group if several are.
        NothingProved: none is, and what was visited is too little to mean anything.
        SubjectError: the subject cannot be put under test.
        SimulationError: it tried what cannot be simulated.
    """
    base = RuleBasedStateMachine.__dict__["TestCase"].__get__(None, machine)

    def run_test(self: Any) -> None:
        simulated_capabilities(machine.subject)
        machine.in_suite = True
        # Explaining a failure by lines takes ten times as long, and the lines would be the harness's.
        phases = [phase for phase in self.settings.phases if phase is not Phase.explain]
        try:
            run_state_machine_as_test(machine, settings=settings(self.settings, phases=phases))
        except Exception as error:
            for breach in _breaches(error):
                breach.add_note(_told(machine, breach))
            raise
        doubts = list(_doubts(machine))
        if doubts:
            raise NothingProved(f"unknown: {'; '.join(doubts)}")

    run_test.__dict__.update(base.runTest.__dict__)  # by which Hypothesis's pytest plugin knows its own
    made: type[TestCase] = type(base.__name__, (base,), {"runTest": run_test, "__module__": machine.__module__})
    return made


def least(
    scenario: Scenario, findings: tuple[Finding, ...], subject: Subject, *, known: Collection[str] = ()
) -> tuple[Scenario, tuple[Finding, ...]]:
    """Shrink a failure, keeping to the rule that was broken first; return what is left and what breaks there.

    Args:
        known: rules that do not count.
    """
    rule_id = findings[0].rule
    latest = findings

    def is_broken(candidate: Scenario) -> bool:
        nonlocal latest
        found = [each for each in run(candidate, subject).outcome.findings if each.rule not in known]
        if not any(finding.rule == rule_id for finding in found):
            return False
        latest = tuple(sorted(found, key=lambda finding: finding.rule != rule_id))
        return True

    shrunk = shrink(scenario, is_broken)
    named = {"name": f"explored-{rule_id}", "summary": latest[0].message}
    return shrunk.model_copy(update=named), latest


def _breaches(error: BaseException) -> Iterator[RuleBroken]:
    if isinstance(error, RuleBroken):
        yield error
    elif isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _breaches(each)


def _told(machine: Any, breach: RuleBroken) -> str:
    """The least scenario in which the same rule breaks, and how to run it."""
    rule_id = breach.findings[0].rule
    again = run(breach.scenario, machine.subject).outcome.findings
    if all(finding.rule != rule_id for finding in again):
        return "As a scenario by itself it breaks no such rule: what the machine did is not all in its steps."
    story, _ = least(breach.scenario, breach.findings, machine.subject, known=machine.known)
    command = f"jobsworth replay {{}} {machine.subject.name}"
    if machine.save is None:
        text = indent(dump(story), "    ")
        return f"The least that breaks it, as {story.name}.yaml:\n\n{text}\n{command.format(f'{story.name}.yaml')}"
    path = write(story, machine.save)
    return f"The least that breaks it is saved; see it happen with: {command.format(path)}"


def _doubts(machine: Any) -> Iterator[str]:
    tally = machine.tally
    yield from tally.doubts()
    if machine.wanders:
        yield from floors.shortfalls(tally.examples, tally.visited(), shares=SHARES)
