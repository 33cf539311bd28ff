"""From a failing scenario to a small one that fails the same way.

Works on scenarios, not on what made them: a shrunk exploration, a shrunk sweep and a shrunk recording are all made
here. Every reduction is tried and kept only if the same rule still breaks, until none helps.
"""

from collections.abc import Callable, Iterator, Mapping
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
    attempts = _Attempts(scenario, is_broken, max_runs)
    before = None
    while before != attempts.best:
        before = attempts.best
        for key in ("steps", "faults"):
            attempts.shorten(key)
        for reduce in _PASSES:
            while any(map(attempts.accept, reduce(attempts.document))):
                pass
    return attempts.best


class _Attempts:
    """The smallest scenario so far, and how many runs may still be spent on making it smaller."""

    def __init__(self, scenario: Scenario, is_broken: Broken, runs_left: int) -> None:
        self.best = scenario
        self.document: _Document = scenario.model_dump(mode="json")
        self._is_broken = is_broken
        self._runs_left = runs_left

    def accept(self, document: _Document) -> bool:
        """Keep ``document`` if it means something, is not what we have, and still fails."""
        if document == self.document or self._runs_left == 0:
            return False
        try:
            candidate = Scenario.model_validate(document)
        except ValidationError:
            return False
        self._runs_left -= 1
        if not self._is_broken(candidate):
            return False
        self.best, self.document = candidate, document
        return True

    def shorten(self, key: str) -> None:
        """Leave out halves of a list, then quarters, … then single items; from the end, where the least is needed."""
        size = max(1, len(self.document[key]) // 2)
        while size:
            end = len(self.document[key])
            while end > 0:
                items = self.document[key]
                self.accept({**self.document, key: [*items[: max(0, end - size)], *items[end:]]})
                end -= size
            size //= 2


def _fewer_operations(whole: _Document) -> Iterator[_Document]:
    for operation in _operations(whole):
        yield _without_operation(whole, operation)


def _fewer_workers(whole: _Document) -> Iterator[_Document]:
    yield {**whole, "workers": whole["workers"] - 1}


def _plainer_terms(whole: _Document) -> Iterator[_Document]:
    for key in ("contract", "timing", "work"):
        yield {**whole, key: {}}
    for key, part in whole["contract"].items():
        yield {**whole, "contract": _without(whole["contract"], key)}
        if isinstance(part, dict):
            yield from ({**whole, "contract": {**whole["contract"], key: _without(part, field)}} for field in part)
    for key, part in whole["work"].items():
        yield {**whole, "work": _without(whole["work"], key)}
        yield from ({**whole, "work": {**whole["work"], key: _without(part, field)}} for field in part)
    yield {**whole, "seed": 0}
    yield {**whole, "requirements": []}  # of the story that it was; the finding names its own


def _plainer_items(whole: _Document) -> Iterator[_Document]:
    for key in ("steps", "faults"):
        for number, item in enumerate(whole[key]):
            for simpler in _simpler(item):
                yield {**whole, key: [*whole[key][:number], simpler, *whole[key][number + 1 :]]}


def _planned_faults(whole: _Document) -> Iterator[_Document]:
    """Faults that lie in wait from the start, where a person looks for them, instead of being armed in a step."""
    for number, step in enumerate(whole["steps"]):
        if step["do"] == "arm":
            others = [*whole["steps"][:number], *whole["steps"][number + 1 :]]
            yield {**whole, "steps": others, "faults": [*whole["faults"], step["fault"]]}


def _plainer_names(whole: _Document) -> Iterator[_Document]:
    """Operations numbered in the order in which they are submitted."""
    plain = {operation: f"op-{number}" for number, operation in enumerate(_operations(whole), start=1)}
    if all(operation == name for operation, name in plain.items()):
        return

    def named(item: _Document) -> _Document:
        told = dict(item)
        if "operation" in item:
            told["operation"] = plain.get(item["operation"], item["operation"])
        if "fault" in item:
            told["fault"] = named(item["fault"])
        if isinstance(item.get("at"), str):
            address, at_whom, who = item["at"].partition("@")
            told["at"] = f"{address}{at_whom}{plain.get(who, who)}"
        return told

    yield {
        **whole,
        **{key: [named(item) for item in whole[key]] for key in ("steps", "faults")},
        **{key: {plain.get(name, name): part for name, part in whole[key].items()} for key in ("work", "ends", "jobs")},
    }


def _rounder_times(whole: _Document) -> Iterator[_Document]:
    for digits in (0, 1):
        yield {**whole, "steps": [{**step, "at": round(step["at"], digits)} for step in whole["steps"]]}


def _shorter_waits(whole: _Document) -> Iterator[_Document]:
    """A step nearer to the one before it, and all later ones with it."""
    before = 0.0
    for number, step in enumerate(whole["steps"]):
        gap = step["at"] - before
        for wait in (0, 1, gap // 2, gap - max(1, gap // 4)):
            if wait < gap:
                nearer = [{**each, "at": round(each["at"] - gap + wait, 3)} for each in whole["steps"][number:]]
                yield {**whole, "steps": [*whole["steps"][:number], *nearer]}
        before = step["at"]


_PASSES: Final = (
    _fewer_operations,
    _fewer_workers,
    _plainer_terms,
    _plainer_items,
    _planned_faults,
    _rounder_times,
    _shorter_waits,
    _plainer_names,
)


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


def _simpler(item: _Document) -> Iterator[_Document]:
    """One step or fault with less in it."""
    if "fault" in item:
        yield from ({**item, "fault": fault} for fault in _simpler(item["fault"]))
    times = item.get("times", 1)
    if times != 1:
        yield from ({**item, "times": 1}, {**item, "times": 2})
    if isinstance(times, int) and times > 2:
        yield from ({**item, "times": times // 2}, {**item, "times": times - 1})
    if isinstance(item.get("at"), str) and "@" in item["at"]:
        yield {**item, "at": item["at"].partition("@")[0]}
    for key in ("parameters", "worker", "error", "who", "why"):
        if item.get(key) and item.get("do") not in {"kill", "start", "stop", "resume"}:
            yield _without(item, key)


def _without(mapping: Mapping[str, Any], key: str) -> _Document:
    return {name: value for name, value in mapping.items() if name != key}
