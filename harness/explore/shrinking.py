"""Makes a failing story shorter, as long as the same rule breaks."""

from collections.abc import Callable, Iterator
from typing import Any

from pydantic import ValidationError

from harness.verdict import Finding
from scenarios.model import Scenario

__all__ = ["shrink"]


def shrink(
    scenario: Scenario, rule: str, play: Callable[[Scenario], tuple[Finding, ...]]
) -> tuple[Scenario, tuple[Finding, ...]]:
    """Return a shorter scenario that breaks ``rule``, and what is found in it.

    Faults and steps are left out one by one, faults that last are made to strike once, and spare workers are sent home,
    until nothing more can go. Which of several shortest stories is returned depends on nothing but the scenario.

    Args:
        rule: the rule that breaks in ``scenario``.
        play: runs a scenario and returns its findings.
    """
    findings = play(scenario)
    shorter = True
    while shorter:
        shorter = False
        for smaller in _smaller(scenario):
            found = play(smaller)
            if any(each.rule == rule for each in found):
                scenario, findings, shorter = smaller, found, True
                break
    return scenario, findings


def _smaller(scenario: Scenario) -> Iterator[Scenario]:
    """Every scenario that is smaller by one thing, and still means something."""
    story = scenario.model_dump()
    faults, steps = story["faults"], story["steps"]
    for number in range(len(faults)):
        yield from _meant({**story, "faults": _without(faults, number)})
    for number in range(len(steps)):
        yield from _meant({**story, "steps": _without(steps, number)})
    for number, fault in enumerate(faults):
        if fault["times"] != 1:
            once = {**fault, "times": 1}
            yield from _meant({**story, "faults": (*faults[:number], once, *faults[number + 1 :])})
    if scenario.workers > 1:
        yield from _meant({**story, "workers": scenario.workers - 1})


def _without(items: tuple[Any, ...], number: int) -> tuple[Any, ...]:
    return (*items[:number], *items[number + 1 :])


def _meant(story: dict[str, Any]) -> Iterator[Scenario]:
    operations = {step["operation"] for step in story["steps"] if step["do"] == "submit"}
    for key in ("work", "ends", "jobs"):
        story = {**story, key: {name: what for name, what in story[key].items() if name in {*operations, "default"}}}
    try:
        yield Scenario.model_validate(story)
    except ValidationError:
        return  # a cancel without its submit, and the like
