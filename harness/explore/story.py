"""One story while it is swept: which runs it wants at each level, and what it learns from those that were made."""

from collections import defaultdict
from collections.abc import Iterator, Mapping

import msgspec

from fake_provider.facts import Endpoint
from harness.explore.attempts import Attempt, Situation
from harness.explore.placements import Place, Placement, Treatment, plain_treatments, treatments
from harness.explore.situations import Precedents, Run
from harness.verdict import Finding, SweptStory
from scenarios.model import Scenario

__all__ = ["Story", "Wanted"]


class Wanted(msgspec.Struct, frozen=True):
    """A run to be made, and the situation in which its last fault strikes, if another run may stand for it."""

    story: "Story"
    placements: tuple[Placement, ...]
    situation: Situation | None = None


class Story:
    """One story while it is swept.

    Args:
        deepest: the most faults in one run.
        is_thorough: whether two and more faults are tried with all parameters.
        prunes: whether runs may stand for one another.
    """

    def __init__(
        self, number: int, scenario: Scenario, root: Attempt, *, deepest: int, is_thorough: bool, prunes: bool
    ) -> None:
        self.number = number
        self.scenario = scenario
        self.root = root
        self.placements = self.runs_made = self.pruned = self.not_made = 0
        self.doubts: list[str] = []
        self.broken: list[tuple[tuple[Placement, ...], Finding]] = []
        self.precedents = Precedents(number, scenario.name, has_webhooks=scenario.contract.webhooks.enabled)
        self._deepest = deepest
        self._is_thorough = is_thorough
        self._prunes = prunes
        self._merged = 0  # placements in runs that are one with a run that is extended
        self._same_reaction = 0  # the same, of this level and those before
        self._reasons_before = 0  # placements that were pruned for a reason, on the levels before
        self._same_story = 0  # placements for which another story's stand
        self._level = 0
        self._frontier: list[Run] = []
        self._next: list[Run] = []
        self._known: dict[tuple[object, ...], Run] = {}  # runs that are extended, by their reactions
        self._outcomes: set[bytes] = set()
        self.made: dict[tuple[Placement, ...], None] = {}  # the runs, in their order
        self._reactions: defaultdict[Endpoint, dict[Treatment, dict[int, bytes | None]]] = defaultdict(dict)
        self._tried: dict[Endpoint, tuple[Treatment, ...]] = {}
        self._keep((), root)

    def next_level(self) -> None:
        """Go on to runs with one fault more."""
        self._level += 1
        if self._level == 2 and self._prunes:
            for endpoint, reactions in self._reactions.items():
                chosen = {each: reactions[each] for each in self._all_at(endpoint, self._level) if each in reactions}
                self._tried[endpoint] = tuple(_distinct(chosen, self.root.reaction))
        self._frontier, self._next = self._next, []
        self.placements += self._merged + sum(self._count(node, self._level) for node in self._frontier)
        self._same_reaction += self._merged
        self._merged = 0

    def end_level(self, *, is_whole: bool) -> None:
        """Count what was not run on this level: as pruned if all was that had to be, else where there is a reason."""
        rest = self.placements - self.runs_made - self.pruned - self.not_made
        reasons = self._same_reaction + self.precedents.followed + self.precedents.idle
        pruned = rest if is_whole else reasons - self._reasons_before
        self._reasons_before = reasons
        self.pruned += pruned
        self.not_made += rest - pruned

    def first_wave(self) -> Iterator[Wanted]:
        """The runs of this level whose last fault strikes once, and those that have no such run to follow from."""
        for node in self._frontier:
            last = node.placements[-1].key if node.placements else (-1, -1)
            for place in node.attempt.places:
                if place.order < last[0]:
                    continue
                situation = self._situation(node, place)
                tried = self._tried_at(place.endpoint)
                for treatment in tried:
                    placement = Placement(place, treatment)
                    if placement.key <= last or (treatment.until_healed and _twin(treatment, place) in tried):
                        continue
                    placements = (*node.placements, placement)
                    if node.attempt.finds(treatment, place):
                        yield Wanted(self, placements, situation)
                    else:
                        self._is_idle(placements)

    def _is_idle(self, placements: tuple[Placement, ...]) -> None:
        """Take note that the last of these faults finds nothing to strike: the run would be that without it. Where it
        is to last, it is one with the fault that lasts from where it first finds something.
        """
        self.precedents.take_for_idle(placements)
        if self._level == 1:
            self._note_reaction(placements[0], None)

    def _situation(self, node: Run, place: Place) -> Situation | None:
        """The situation at a place, if runs may stand for one another by it: not where another fault struck already."""
        if not self._prunes or self._is_thorough or (node.placements and place == node.placements[-1].place):
            return None
        return node.attempt.situation_at(place)

    def lasting(self, placements: tuple[Placement, ...], attempt: Attempt) -> Iterator[tuple[Placement, ...]]:
        """The runs in which one fault lasts that struck once in this run, where that makes a difference."""
        if self._level > 1 and not self._is_thorough:
            return
        for number, placement in enumerate(placements):
            place, treatment = placement.place, placement.treatment
            if treatment.until_healed or not attempt.passes_again(place.endpoint, place):
                continue
            longer = Placement(place, _twin(treatment, place))
            changed = (*placements[:number], longer, *placements[number + 1 :])
            is_last = number == len(placements) - 1
            if is_last and longer.treatment not in self._tried_at(place.endpoint):
                continue
            if changed[: number + 1] not in self.made:  # else that run was extended on its own
                yield changed

    def take(self, wanted: Wanted, attempt: Attempt) -> None:
        """Take note of a run."""
        placements = wanted.placements
        self.runs_made += 1
        self._outcomes.add(attempt.reaction)
        if wanted.situation is not None:
            self.precedents.add(
                wanted.situation,
                placements,
                quiet_from=attempt.quiet_from,
                ended=attempt.ended,
                clock_jumped=attempt.clock_jumped,
            )
        self.made[placements] = None
        if self._level == 1:
            self._note_reaction(placements[0], attempt.reaction if attempt.struck else None)
        self._keep(placements, attempt)

    def _note_reaction(self, only: Placement, reaction: bytes | None) -> None:
        of_endpoint = self._reactions[only.place.endpoint]
        of_endpoint.setdefault(only.treatment, {})[only.place.order] = reaction
        if not only.treatment.until_healed:  # stands for the run in which it lasts, until that one is made
            longer = of_endpoint.setdefault(_twin(only.treatment, only.place), {})
            longer.setdefault(only.place.order, reaction)

    def stand_behind(self, first: "Story") -> None:
        """Leave it to another story, which is one with this, to be swept."""
        self.placements, self.not_made = first.placements, first.not_made
        self.pruned = self._same_story = self.placements - self.not_made
        self.precedents.stand_behind(first.number, first.made)

    def _keep(self, placements: tuple[Placement, ...], attempt: Attempt) -> None:
        self.broken += [(placements, finding) for finding in attempt.findings]
        if not attempt.struck:
            return  # the last fault found nothing to strike: this run is the one without it
        if attempt.doubt is not None:
            self.doubts.append(attempt.doubt)
        if attempt.findings or attempt.doubt is not None or self._level == self._deepest:
            return
        if not self._is_thorough and not all(each.treatment.is_plain for each in placements):
            return
        node = Run(placements, attempt)
        is_noticed = attempt.reaction != self.root.reaction
        armed = [(each.place.endpoint, each.treatment.point) for each in placements if each.treatment.until_healed]
        reaction = (attempt.reaction, *(armed if is_noticed else ()))
        known = self._known.get(reaction)
        if self._prunes and known is not None:
            self._merged += self._count(node, self._level + 1)
            self.precedents.merge(known, node)
        else:
            self._known[reaction] = node
            self._next.append(node)

    def _all_at(self, endpoint: Endpoint, level: int) -> tuple[Treatment, ...]:
        """The treatments from which those to be tried are chosen, where a run has so many faults."""
        return treatments(endpoint) if self._is_thorough or level <= 1 else plain_treatments(endpoint)

    def _tried_at(self, endpoint: Endpoint) -> tuple[Treatment, ...]:
        if self._level <= 1:
            return treatments(endpoint)
        if endpoint not in self._tried:  # only faults lead there, or nothing is pruned
            self._tried[endpoint] = plain_treatments(endpoint)
        return self._tried[endpoint]

    def _count(self, node: Run, level: int) -> int:
        """How many placements there are in a run, after those it has already, to make it one with so many faults."""
        last = node.placements[-1].key if node.placements else (-1, -1)
        count = 0
        for place in node.attempt.places:
            if place.order > last[0]:
                count += len(self._all_at(place.endpoint, level))
            elif place.order == last[0]:
                count += sum(treatment.rank > last[1] for treatment in self._all_at(place.endpoint, level))
        return count

    def summary(self) -> SweptStory:
        return SweptStory(
            scenario=self.scenario.name,
            placements=self.placements,
            pruned=self.pruned,
            same_reaction=self._same_reaction,
            same_situation=self._same_story or self.precedents.followed,
            nothing_to_strike=self.precedents.idle,
            audited=self.precedents.audited,
            runs_made=self.runs_made,
            outcomes=len(self._outcomes),
            not_made=self.not_made,
        )


def _twin(treatment: Treatment, place: Place) -> Treatment:
    """The same treatment once instead of until healed, or the other way round: they stand side by side."""
    return treatments(place.endpoint)[treatment.rank + (-1 if treatment.until_healed else 1)]


def _distinct(reactions: Mapping[Treatment, Mapping[int, bytes | None]], none: bytes) -> Iterator[Treatment]:
    """Of treatments that called forth the same reactions, the first; not those that called forth none."""
    seen: set[tuple[object, ...]] = set()
    for treatment, by_place in sorted(reactions.items(), key=lambda item: item[0].rank):
        called = tuple(by_place[order] for order in sorted(by_place))
        if any(called):
            if not set(called) - {None, none}:
                continue
            alike: tuple[object, ...] = (treatment.until_healed, *called)
        else:
            alike = (treatment.until_healed, treatment.kind)
        if alike not in seen:
            seen.add(alike)
            yield treatment
