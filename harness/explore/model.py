"""Exhaustive exploration of the reference client's decisions: its pure workflow against the pure provider, without HTTP
and without an event loop.

Where a run has one order of events, the model has all: at each instant any worker that has something to do may do it
next, or a fault may strike it, or a webhook may arrive, or a person may say stop, or, when nobody has anything to do,
time passes to the next thing that is due. Breadth first, from nothing to rest, every state that can be reached within
the bounds is visited once, and every rule judges every step on the way there. Bounded by :class:`Bounds`, so that it
ends.

A state is what is on the shelf, what each worker is in the midst of, what the provider has in hand, the time, how many
faults are left, and when a person said stop. A path to a state is the choices made, in order; a state is made again by
making them again.
"""

from collections import deque
from collections.abc import Callable

import msgspec

from harness.explore.walk import STOP, Bounds, Walk
from harness.subjects.pure import PureReference
from harness.verdict import Finding

__all__ = ["Bounds", "Explored", "explore_all"]


class Explored(msgspec.Struct, frozen=True, kw_only=True):
    """What there was to explore."""

    states: int
    steps: int  # ways from one state to another
    ends: int  # states in which everything rests
    judged: frozenset[str]  # rules that had something to judge
    findings: tuple[tuple[Finding, tuple[str, ...]], ...]  # with the choices that lead there


def explore_all(
    bounds: Bounds | None = None,
    *,
    client: type[PureReference] = PureReference,
    tell: Callable[[int, int], object] | None = None,
) -> Explored:
    """Visit every state that can be reached.

    Args:
        bounds: how much there is of everything.
        client: the client; for tests, one that lacks something.
        tell: told how many states were visited, and how many are known and were not.
    """
    bounds = bounds or Bounds()
    first = Walk(bounds, client)
    seen = {first.key()}
    waiting: deque[tuple[str, ...]] = deque([()])
    steps = ends = 0
    judged: set[str] = set()
    findings: list[tuple[Finding, tuple[str, ...]]] = []
    while waiting:
        path = waiting.popleft()
        here = Walk(bounds, client, path)
        choices = here.choices()
        if not set(choices) - {STOP}:
            ends += 1
            concluded = (Walk(bounds, client, path) if choices else here).conclude()
            judged.update(concluded.judged)
            findings += [(finding, path) for finding in concluded.findings]
            assert not concluded.crashed, concluded.crashed
        for number, choice in enumerate(choices):
            # The last choice is made in the run that is here already; the others each in a run of their own.
            there = here if number == len(choices) - 1 else Walk(bounds, client, path)
            there.choose(choice)
            steps += 1
            if there.judge.findings:
                findings += [(finding, (*path, choice)) for finding in there.judge.findings]
            elif (key := there.key()) not in seen:
                seen.add(key)
                waiting.append((*path, choice))
        if tell is not None:
            tell(len(seen) - len(waiting), len(waiting))
    return Explored(states=len(seen), steps=steps, ends=ends, judged=frozenset(judged), findings=tuple(findings))
