"""From a failing scenario to a small one that fails the same way.

Works on scenarios, not on what made them: a shrunk exploration, a shrunk sweep and a shrunk recording are all made
here. Every reduction is tried and kept only if the same rule still breaks, until none helps.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from pydantic import ValidationError

from scenarios.model import Scenario

__all__ = ["MAX_RUNS", "shrink"]

MAX_RUNS: Final = 500
"""A run takes some milliseconds; a failure that is not small after so many is looked at as it is."""

Broken = Callable[[Scenario], bool]
_Document = dict[str, Any]


def shrink(scenario: Scenario, is_broken: Broken, *, max_runs: int = MAX_RUNS) -> Scenario:
    """Return the smallest scenario found that ``is_broken`` still says yes to.

    Args:
        scenario: one that it says yes to.
        is_broken: runs a scenario and tells whether it fails in the way that matters.
        max_runs: how often it may be asked.
    """
    best = scenario
    runs_left = max_runs
    improved = True
    while improved:
        improved = False
        for candidate in _smaller(best):
            if runs_left == 0:
                return best
            runs_left -= 1
            if is_broken(candidate):
                best = candidate
                improved = True
                break
    return best


def _smaller(scenario: Scenario) -> Iterator[Scenario]:
    """Scenarios that say less, the largest leaps first. Those that would mean nothing are left out."""
    whole = scenario.model_dump(mode="json")
    for document in _reductions(whole):
        if document == whole:
            continue
        try:
            yield Scenario.model_validate(document)
        except ValidationError:
            continue


def _reductions(whole: _Document) -> Iterator[_Document]:
    for operation in _operations(whole):
        yield _without_operation(whole, operation)
    for key in ("steps", "faults"):
        for shorter in _shorter(whole[key]):
            yield {**whole, key: shorter}
    if whole["workers"] > 1:
        yield {**whole, "workers": whole["workers"] - 1}
    for key in ("contract", "timing", "work"):
        yield {**whole, key: {}}
    for key, part in whole["contract"].items():
        yield {**whole, "contract": _without(whole["contract"], key)}
        if isinstance(part, dict):
            yield from ({**whole, "contract": {**whole["contract"], key: _without(part, field)}} for field in part)
    for key in whole["work"]:
        yield {**whole, "work": _without(whole["work"], key)}
    yield {**whole, "seed": 0}
    for key in ("steps", "faults"):
        for number, item in enumerate(whole[key]):
            for simpler in _simpler(item):
                yield {**whole, key: [*whole[key][:number], simpler, *whole[key][number + 1 :]]}
    yield {**whole, "steps": [{**step, "at": float(round(step["at"]))} for step in whole["steps"]]}
    yield {**whole, "steps": [{**step, "at": round(step["at"], 1)} for step in whole["steps"]]}


def _operations(whole: _Document) -> list[str]:
    return list(dict.fromkeys(step["operation"] for step in whole["steps"] if step["do"] == "submit"))


def _without_operation(whole: _Document, operation: str) -> _Document:
    def speaks_of_it(step: Mapping[str, Any]) -> bool:
        at = step.get("fault", {}).get("at", "")
        return step.get("operation") == operation or str(at).endswith(f"@{operation}")

    return {
        **whole,
        "steps": [step for step in whole["steps"] if not speaks_of_it(step)],
        "faults": [fault for fault in whole["faults"] if not fault["at"].endswith(f"@{operation}")],
        **{key: _without(whole[key], operation) for key in ("work", "ends", "jobs")},
    }


def _shorter(items: Sequence[Any]) -> Iterator[list[Any]]:
    """Leave out halves, then quarters, … then single items, the last first: what follows a failure is the least
    needed.
    """
    size = len(items) // 2
    while size:
        for start in range(len(items) - size, -1, -size):
            yield [*items[:start], *items[start + size :]]
        size //= 2
    if len(items) == 1:
        yield []


def _simpler(item: _Document) -> Iterator[_Document]:
    """One step or fault with less in it."""
    if "fault" in item:
        yield from ({**item, "fault": fault} for fault in _simpler(item["fault"]))
    if item.get("times", 1) != 1:
        yield {**item, "times": 1}
    if isinstance(item.get("at"), str) and "@" in item["at"]:
        yield {**item, "at": item["at"].partition("@")[0]}
    for key in ("parameters", "worker", "error"):
        if item.get(key) and item.get("do") not in {"kill", "start", "stop", "resume"}:
            yield _without(item, key)


def _without(mapping: Mapping[str, Any], key: str) -> _Document:
    return {name: value for name, value in mapping.items() if name != key}
