"""Exhaustive exploration: every fault at every place of a story, then every pair of them, then triples.

A sweep starts from a run of the story without faults. Each *placement* in it, a treatment at a place that the run
passed, is a run of its own; a second fault is placed in the run with the first one, so that exchanges which exist only
because of the first are reached as well. It ends by itself, since a run passes no more places than there are.

A single fault is tried with all its parameters, once and until healed. Two or more are *plain* unless the sweep is
thorough: each kind with one choice of parameters, striking once. Not every placement needs a run. These are *pruned*,
and counted; the last two only where the client says what it will go on from (``harness.subject.Candid``):

* A fault of webhooks, where the contract has none: there is nothing to strike.
* A fault that lasts until healed, where no later exchange would have met it: the run is that of the same fault once.
* From the second fault on, placements in a run whose client did the very same things, with the same in hand at the
  provider, as in a run that is extended already (``attempts`` says what a reaction is); a run with a fault that nobody
  noticed is one with the run that lacks it.
* From the second fault on, treatments that called forth the same reaction as another one, at every place of the
  fault-free run. A treatment that called forth none is left out; one that found nothing to strike there is kept.
* From the second fault on, a placement at which the run has come to the same *situation* as another one that is made
  with the same treatment (``situations`` says what that is).
* All of a story that differs from another one in nothing but what its jobs are asked to do, and runs through the same
  situations without faults.

What is assumed where one run stands for another is tried on a sample of what is pruned for it: the *audit*. A placement
that is followed by something else than the one that stands for it makes the sweep unknown.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from fake_provider.facts import Endpoint
from fake_provider.faults import KINDS, webhooks
from harness.explore.attempts import Attempt, Crew, Situation, crew
from harness.explore.placements import Place, Placement, Treatment, plain_treatments, stage, treatments
from harness.explore.reactions import differ
from harness.explore.shrink import shrink
from harness.explore.situations import Precedents, Run, without_its_task
from harness.stage import SubjectError
from harness.subjects.resolve import Subject
from harness.verdict import Finding, SweptStory, Verdict, decide
from scenarios.dumping import dump
from scenarios.model import Arm, Heal, Kill, Resume, Scenario, SetClock, Start, Stop

__all__ = ["CORE", "MOST_FAULTS", "Sweep", "sweep"]

CORE: Final = (
    "happy-path",
    "lost-create-response",
    "crash-before-first-poll",
    "cancel-race-completion-wins",
    "cancel-race-cancel-wins",
    "duplicate-webhook",
    "stale-lease",
)
"""The core scenarios: what is swept unless scenarios are named."""

MOST_FAULTS: Final = 3

_ABOUT_WEBHOOKS: Final = frozenset(name for name, kind in KINDS.items() if kind.__module__ == webhooks.__name__)

Tell = Callable[[str, int, int], object]
"""Told what is being done, how many of its runs are made, and how many there are."""


class Sweep(msgspec.Struct, frozen=True, kw_only=True):
    """What a sweep came to."""

    verdict: Verdict
    reason: str
    faults: int
    stories: tuple[SweptStory, ...]
    seconds: float
    findings: tuple[Finding, ...]
    saved_scenarios: tuple[str, ...]


class _Wanted(msgspec.Struct, frozen=True):
    """A run to be made, and the situation in which its last fault strikes, if another run may stand for it."""

    story: "_Story"
    placements: tuple[Placement, ...]
    situation: Situation | None = None


class _Story:
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
        self.precedents = Precedents(number, scenario.name)
        self._deepest = deepest
        self._is_thorough = is_thorough
        self._prunes = prunes
        self._merged = 0  # placements in runs that are one with a run that is extended
        self._same_reaction = 0  # the same, of this level and those before
        self._same_story = 0  # placements for which another story's stand
        self._level = 0
        self._frontier: list[Run] = []
        self._next: list[Run] = []
        self._known: dict[tuple[object, ...], Run] = {}  # runs that are extended, by their reactions
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
        """Count what was not run on this level: pruned if all was that had to be, else not made."""
        rest = self.placements - self.runs_made - self.pruned - self.not_made
        if is_whole:
            self.pruned += rest
        else:
            self.not_made += rest

    def first_wave(self) -> Iterator[_Wanted]:
        """The runs of this level whose last fault strikes once, and those that have no such run to follow from."""
        for node in self._frontier:
            last = node.placements[-1].key if node.placements else (-1, -1)
            for place in node.attempt.places:
                if place.order < last[0]:
                    continue
                situation = self._situation(node, place)
                tried = self._tried_at(place.endpoint)
                for treatment in tried:
                    if treatment.kind in _ABOUT_WEBHOOKS and not self.scenario.contract.webhooks.enabled:
                        continue
                    placement = Placement(place, treatment)
                    if placement.key > last and not (treatment.until_healed and _twin(treatment, place) in tried):
                        yield _Wanted(self, (*node.placements, placement), situation)

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

    def take(self, wanted: _Wanted, attempt: Attempt) -> None:
        """Take note of a run."""
        placements = wanted.placements
        self.runs_made += 1
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
            (only,) = placements
            reaction = attempt.reaction if attempt.struck else None
            of_endpoint = self._reactions[only.place.endpoint]
            of_endpoint.setdefault(only.treatment, {})[only.place.order] = reaction
            if not only.treatment.until_healed:  # stands for the run in which it lasts, until that one is made
                longer = of_endpoint.setdefault(_twin(only.treatment, only.place), {})
                longer.setdefault(only.place.order, reaction)
        self._keep(placements, attempt)

    def stand_behind(self, first: "_Story") -> None:
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
            audited=self.precedents.audited,
            runs_made=self.runs_made,
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


# -- the whole


def sweep(
    subject: Subject,
    scenarios: Iterable[Scenario],
    *,
    faults: int = 1,
    seed: int | None = None,
    thorough: bool = False,
    prune: bool = True,
    cores: int | None = None,
    most_runs: int | None = None,
    save: Path | None = None,
    tell: Tell = lambda what, done, total: None,  # noqa: ARG005
) -> Sweep:
    """Sweep scenarios.

    Args:
        faults: how many faults at most there are in one run, 1 to :data:`MOST_FAULTS`.
        seed: what the randomness inside each run starts from; each scenario's own if None.
        thorough: try two and more faults with all parameters too, and lasting: tens of times as many runs.
        prune: let runs stand for one another; without, every plain placement that finds something to strike is a run.
        cores: processes to use; all there are if None.
        most_runs: after so many runs, no more are made; the others are counted.
        save: a folder for the shrunk scenario of each rule that broke; made if absent.
        tell: told of progress.

    Raises:
        SubjectError: the subject cannot be simulated.
    """
    if subject.factory is None:
        raise SubjectError(f"{subject.name!r} cannot be swept: a sweep needs a client that can be simulated")
    began = time.perf_counter()
    bare = tuple(_without_faults(scenario) for scenario in scenarios)
    with crew(subject, bare, seed=seed, cores=cores, looks_below=faults if prune and not thorough else 0) as hands:
        roots = list(hands.all((number, ()) for number in range(len(bare))))
        stories: list[_Story] = []
        twins: list[tuple[_Story, _Story]] = []
        for number, (scenario, root) in enumerate(zip(bare, roots, strict=True)):
            story = _Story(number, scenario, root, deepest=faults, is_thorough=thorough, prunes=prune)
            first = next((each for each in stories if _are_one(each, story)), None) if prune else None
            if first is None:
                stories.append(story)
            else:
                twins.append((story, first))
        budget = _Budget(most_runs)
        for level in range(1, faults + 1):
            _sweep_level(hands, stories, level, budget, tell)
        for twin, first in twins:
            twin.stand_behind(first)
            _audit(hands, twin)
        stories = sorted([*stories, *(twin for twin, _ in twins)], key=lambda story: story.number)
        shrunk = list(_shrunk(hands, stories))
    saved = [_save(scenario, finding, save) for scenario, finding in shrunk] if save is not None else []
    findings = tuple(finding for _, finding in shrunk)
    verdict, reason = _verdict(stories, findings)
    return Sweep(
        verdict=verdict,
        reason=reason,
        faults=faults,
        stories=tuple(story.summary() for story in stories),
        seconds=round(time.perf_counter() - began, 3),
        findings=findings,
        saved_scenarios=tuple(str(path) for path in saved),
    )


class _Budget:
    """How many runs may still be made."""

    def __init__(self, runs: int | None) -> None:
        self._left = runs

    def afford(self, wanted: list[_Wanted]) -> tuple[list[_Wanted], set[int]]:
        """Return those that may be made, and the stories of which some may not."""
        if self._left is None:
            return wanted, set()
        made, left = wanted[: self._left], wanted[self._left :]
        self._left -= len(made)
        return made, {each.story.number for each in left}


def _sweep_level(hands: Crew, stories: Sequence[_Story], level: int, budget: _Budget, tell: Tell) -> None:
    """Make every run with so many faults: first where the last one strikes once, then where faults last. A run that
    another one may stand for waits until that one is made.
    """
    for story in stories:
        story.next_level()
    pending = [wanted for story in stories for wanted in story.first_wave()]
    planned: set[tuple[int, tuple[Placement, ...]]] = set()
    cut: set[int] = set()
    done = total = 0
    what = "one fault" if level == 1 else f"{level} faults"
    while pending:
        wave, waiting = _without_precedent(pending)
        wave, over = budget.afford(wave)
        cut |= over
        total += len(wave)
        longer: list[_Wanted] = []
        attempts = hands.all((each.story.number, each.placements) for each in wave)
        for wanted, attempt in zip(wave, attempts, strict=True):
            story = wanted.story
            story.take(wanted, attempt)
            for changed in story.lasting(wanted.placements, attempt):
                if (story.number, changed) not in planned:
                    planned.add((story.number, changed))
                    longer.append(_Wanted(story, changed))
            done += 1
            tell(what, done, total)
        pending = waiting + longer
    for story in stories:
        story.end_level(is_whole=story.number not in cut)
        _audit(hands, story)


def _without_precedent(pending: Iterable[_Wanted]) -> tuple[list[_Wanted], list[_Wanted]]:
    """Leave out what another run stands for. Of the others, return those to be made now, and those to be looked at
    again when these are made.
    """
    now: list[_Wanted] = []
    later: list[_Wanted] = []
    claimed: set[tuple[int, bytes, Treatment]] = set()
    for wanted in pending:
        situation, last = wanted.situation, wanted.placements[-1]
        if situation is None or len(wanted.placements) == 1:  # a fault by itself is tried at every place
            now.append(wanted)
        elif not wanted.story.precedents.follows(situation, wanted.placements):
            claim = (wanted.story.number, situation.digest, last.treatment)
            (later if claim in claimed else now).append(wanted)
            claimed.add(claim)
    return now, later


def _audit(hands: Crew, story: _Story) -> None:
    """Make the runs of a sample of what was pruned, and those that stand for them."""
    audits = story.precedents.due()
    tasks = [task for each in audits for task in ((each.number, each.precedent), (story.number, each.follower))]
    aftermaths = list(hands.aftermaths(tasks))
    for audit, one, other in zip(audits, aftermaths[::2], aftermaths[1::2], strict=True):
        story.broken += [(audit.follower, finding) for finding in other.findings]
        if differ(one.sequel, other.sequel):
            story.doubts.append(f"{audit} (sweep it with --no-prune)")


def _are_one(first: _Story, other: _Story) -> bool:
    """Whether two stories differ in nothing but what their jobs are asked to do, and come to the same situations."""
    return (
        without_its_task(first.scenario) == without_its_task(other.scenario)
        and None not in first.root.situations
        and first.root.situations == other.root.situations
        and bool(first.root.situations)
    )


def _without_faults(scenario: Scenario) -> Scenario:
    """The story as it goes if nothing goes wrong, and without its own ideas of how it ends."""
    steps = tuple(
        step for step in scenario.steps if not isinstance(step, Arm | Heal | Kill | Resume | SetClock | Start | Stop)
    )
    return scenario.model_copy(update={"faults": (), "steps": steps, "ends": {}, "jobs": {}})


def _shrunk(hands: Crew, stories: Iterable[_Story]) -> Iterator[tuple[Scenario, Finding]]:
    """For each rule that broke, the first of the runs with the fewest faults in which it did, shrunk."""
    first: dict[str, tuple[_Story, tuple[Placement, ...]]] = {}
    for story in stories:
        for placements, finding in story.broken:
            known = first.get(finding.rule)
            if known is None or len(placements) < len(known[1]):
                first[finding.rule] = (story, placements)

    for rule, (story, placements) in sorted(first.items()):
        least = shrink(stage(story.scenario, placements), partial(_breaks, hands, rule))
        breach = _breach(hands, rule, least)
        assert breach is not None, "shrinking keeps to the rule"
        yield least, breach


def _breach(hands: Crew, rule: str, scenario: Scenario) -> Finding | None:
    return next((each for each in hands.play(scenario) if each.rule == rule), None)


def _breaks(hands: Crew, rule: str, scenario: Scenario) -> bool:
    return _breach(hands, rule, scenario) is not None


def _save(scenario: Scenario, finding: Finding, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    named = scenario.model_copy(update={"name": f"swept-{finding.rule}", "summary": finding.message})
    path = folder / f"{named.name}.yaml"
    path.write_text(dump(named), encoding="utf-8")
    return path


def _verdict(stories: Sequence[_Story], findings: tuple[Finding, ...]) -> tuple[Verdict, str]:
    doubts = [f"{story.scenario.name}: {doubt}" for story in stories for doubt in story.doubts[:1]]
    doubts += [f"{story.scenario.name}: no fault could be placed" for story in stories if not story.placements]
    if not stories:
        doubts.append("no story was swept")
    verdict, reason = decide(findings=findings, doubts=doubts)
    if verdict is not Verdict.PASS:
        return verdict, reason
    not_made = sum(story.not_made for story in stories)
    runs = sum(story.runs_made for story in stories)
    return verdict, f"no rule broke in {runs} runs" + (
        f"; {not_made} were not made, by the limit on runs" if not_made else ""
    )
