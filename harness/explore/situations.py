"""Runs that stand for others, because the same fault strikes in the same situation.

Pure. The situation at a place is what the clients, the provider, the network and the story will go on from, all times
counted from that moment (``attempts`` takes it). What is assumed where one placement stands for another:

* A client says all that it goes on from, in its outlook or by what it does in the rest of the instant, and is told the
  time of day by nothing but differences. What it draws at random may differ.
* What rules remember of the time before is what both runs have in common: which jobs there are, for which tokens and in
  which states, and what the clients' records say. A rule that counts what was done lately, as those on manners
  do, may have counted less in the run that was made: what only the sum of both breaks is left to the audit.
* Every fault that was put in before has struck, and faults are healed when all is at rest, at the next of the harness's
  looks. Where webhooks may come meanwhile, both runs must be as far from that look.
* A worker lives: of a disk that nobody looks at, nothing is known.
* A deadline changes nothing before it passes. Where one of them comes at another time, the clients of the run that was
  made must have been done before either; a clock that is set wrong must also jump over both, or over neither. Where it
  is something at the provider, the whole run must have been over.
"""

from collections import defaultdict
from collections.abc import Iterable
from random import Random
from typing import Final

import msgspec

from fake_provider.faults.host import ClockSkewed
from fake_provider.outlook import comparable_s
from harness.course import REST_CHECK_S
from harness.explore.attempts import Attempt, Situation
from harness.explore.placements import Placement, plain_treatments
from scenarios.model import Scenario, Submit

__all__ = ["AUDITED", "MERGED_AUDITED", "Audit", "Precedents", "Run", "without_its_task"]

AUDITED: Final = 0.01
"""The part of what is pruned that is run all the same, beside the first of each story: it shows whether what is assumed
holds for this client.
"""

MERGED_AUDITED: Final = 0.05
"""The part of the runs that are not gone on with of which one placement is run all the same."""

_SAME_S: Final = 0.001


class Audit(msgspec.Struct, frozen=True):
    """A placement that was pruned, and the run that stands for it: ``number`` is the story's that it belongs to."""

    number: int
    precedent: tuple[Placement, ...]
    follower: tuple[Placement, ...]

    def __str__(self) -> str:
        return f"{_words(self.follower)}: not followed by the same as {_words(self.precedent)}, which stands for it"


class Run(msgspec.Struct, frozen=True):
    """A run that may be gone on with: extended by one more fault."""

    placements: tuple[Placement, ...]
    attempt: Attempt


class _Precedent(msgspec.Struct, frozen=True):
    situation: Situation
    quiet_s: float  # from the fault until nothing was done any more
    lasted_s: float  # from the fault to the end of the run
    placements: tuple[Placement, ...]
    jump: "_Jump | None"

    def holds_for(self, other: Situation) -> bool:
        """Whether each deadline comes at the same time after the fault, or after it could have mattered."""
        return _agree(self.situation.ends, other.ends, self.quiet_s, self.jump) and _agree(
            self.situation.dues, other.dues, self.lasted_s
        )


class _Jump(msgspec.Struct, frozen=True):
    """The fault sets a worker's clock forward: deadlines come the sooner for it, or do not, where the client counts
    them by another clock.
    """

    in_s: float  # from the fault on
    ahead_s: float

    def is_one_to(self, deadline_s: float, other_s: float, until: float) -> bool:
        """Whether the clock jumps over both deadlines, or both are still to come when it matters no more."""
        first, last = sorted((deadline_s, other_s))
        return first > until + max(0.0, self.ahead_s) or self.in_s < first <= last <= self.ahead_s


class Precedents:
    """The runs of one story by the situation in which their last fault struck, and what they stand for."""

    def __init__(self, number: int, name: str, *, has_webhooks: bool) -> None:
        """Args:
        name: of the story; what is drawn for the audit depends on it alone.
        """
        self._has_webhooks = has_webhooks
        self.followed = 0  # placements that need no run
        self.idle = 0  # placements that find nothing to strike
        self.audited = 0
        self._number = number
        self._made: defaultdict[tuple[object, ...], list[_Precedent]] = defaultdict(list)
        self._draw = Random(f"audit of {name}")
        self._due: list[Audit] = []
        self._idle: list[tuple[Placement, ...]] = []

    def add(
        self,
        situation: Situation,
        placements: tuple[Placement, ...],
        *,
        quiet_from: float,
        ended: float,
        clock_jumped: float | None = None,
    ) -> None:
        """Take note of a run that was made. The times are in seconds since its start, as in an attempt."""
        last = placements[-1]
        struck_at, fault = last.place.at, last.fault()
        jump = None
        if isinstance(fault, ClockSkewed) and clock_jumped is not None:
            jump = _Jump(clock_jumped - struck_at, fault.ahead_s)
        made = _Precedent(situation, quiet_from - struck_at, ended - struck_at, placements, jump)
        self._made[self._key(situation, placements)].append(made)

    def follows(self, situation: Situation, placements: tuple[Placement, ...]) -> bool:
        """Whether a run stands for this placement. Some of those are drawn for the audit."""
        for made in self._made.get(self._key(situation, placements), ()):
            if made.holds_for(situation):
                if not self.followed or self._draw.random() < AUDITED:
                    self._due.append(Audit(self._number, made.placements, placements))
                self.followed += 1
                return True
        return False

    def _key(self, situation: Situation, placements: tuple[Placement, ...]) -> tuple[object, ...]:
        """What must be the same where one placement stands for another."""
        return situation.digest, placements[-1].treatment, self._phase(placements)

    def _phase(self, placements: tuple[Placement, ...]) -> float | None:
        """Where in the harness's second the fault strikes, if webhooks may come of themselves.

        Once all is at rest the harness heals the faults, at the next of its looks: what a webhook comes upon after that
        depends on it.
        """
        at = placements[-1].place.at
        return comparable_s(at % REST_CHECK_S["simulated"]) if self._has_webhooks else None

    def take_for_idle(self, placements: tuple[Placement, ...]) -> None:
        """Take note that the last fault will find nothing to strike. Some of those are drawn for the audit."""
        self.idle += 1
        if self.idle == 1 or self._draw.random() < AUDITED:
            self._idle.append(placements)

    def merge(self, first: Run, other: Run) -> None:
        """Take note that a run is not gone on with, since its client did the same as in another one. Of some of these,
        one placement is drawn for the audit.
        """
        after = len(other.attempt.places) - 1 - other.placements[-1].place.order
        if not after or self._draw.random() >= MERGED_AUDITED:
            return
        back = self._draw.randint(1, after)
        place = other.attempt.places[-back]
        treatment = self._draw.choice(plain_treatments(place.endpoint))
        there = first.attempt.places[-back] if back <= len(first.attempt.places) else None
        if there is not None and (there.endpoint, there.at) == (place.endpoint, place.at):
            one, two = ((*each.placements, Placement(at, treatment)) for each, at in ((first, there), (other, place)))
            self._due.append(Audit(self._number, one, two))

    def stand_behind(self, number: int, runs: Iterable[tuple[Placement, ...]]) -> None:
        """Let each run of another story stand for the same one of this, and draw some of them for the audit."""
        self._due += [
            Audit(number, each, each) for place, each in enumerate(runs) if not place or self._draw.random() < AUDITED
        ]

    def said_to_be_idle(self) -> list[tuple[Placement, ...]]:
        """Return the placements since the last call that are to be seen to strike nothing, and count them."""
        idle, self._idle = self._idle, []
        self.audited += len(idle)
        return idle

    def due(self) -> list[Audit]:
        """Return what is to be audited since the last call, and count it."""
        due, self._due = self._due, []
        self.audited += len(due)
        return due


def _agree(ends: tuple[float, ...], others: tuple[float, ...], until: float, jump: _Jump | None = None) -> bool:
    return all(
        abs(one - other) <= _SAME_S
        or (min(one, other) > until + _SAME_S and (jump is None or jump.is_one_to(one, other, until)))
        for one, other in zip(ends, others, strict=True)
    )


def without_its_task(scenario: Scenario) -> Scenario:
    """Return a story without its name, and without what its jobs are asked to do, if each of them is asked for once."""
    asked = [step.operation for step in scenario.steps if isinstance(step, Submit)]
    if len(asked) > len(set(asked)):
        return scenario
    steps = tuple(
        step.model_copy(update={"parameters": {}}) if isinstance(step, Submit) else step for step in scenario.steps
    )
    return scenario.model_copy(update={"name": "", "summary": "", "requirements": (), "steps": steps})


def _words(placements: tuple[Placement, ...]) -> str:
    return " and ".join(f"{each.treatment.kind} at {each.fault().at}" for each in placements)
