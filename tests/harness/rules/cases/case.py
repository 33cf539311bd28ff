"""What a rule makes of four histories: one that has nothing for it, two that keep it, one of them barely, and one
that breaks it."""

from collections.abc import Callable
from typing import NamedTuple

from tests.harness.rules.histories import Story

Told = Callable[[Story], object]


class Case(NamedTuple):
    rule: str
    nothing: Told  # nothing to judge
    holds: Told
    just_holds: Told  # the nearest to a breach that is none
    breaks: Told
