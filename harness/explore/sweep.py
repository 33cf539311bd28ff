"""Exhaustive exploration: every fault at every place of a story, then every pair of them, then triples.

A sweep starts from a run of the story without faults. Each *placement* in it, a treatment at a place that the run
passed, is a run of its own; a second fault is placed in the run with the first one, so that exchanges which exist only
because of the first are reached as well. It ends by itself, since a run passes no more places than there are.

A single fault is tried with all its parameters, once and until healed. Two or more are *plain* unless the sweep is
thorough: each kind with one choice of parameters, striking once. Not every placement needs a run. These are *pruned*,
and counted; the last two only where the client says what it will go on from (``harness.subject.Candid``):

* A fault that would find nothing to strike: the run without it says so, which asks each kind at each commit point.
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
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from harness.explore.attempts import Crew, crew
from harness.explore.placements import Placement, Treatment, stage
from harness.explore.reactions import differ
from harness.explore.shrink import shrink
from harness.explore.situations import without_its_task
from harness.explore.story import Story, Wanted
from harness.stage import SubjectError
from harness.subjects.resolve import Subject
from harness.verdict import Finding, SweptStory, Verdict, decide
from scenarios.dumping import write
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
    looks = prune and not thorough
    with crew(subject, bare, seed=seed, cores=cores, deepest=faults, looks=looks) as hands:
        roots = list(hands.all((number, ()) for number in range(len(bare))))
        stories: list[Story] = []
        twins: list[tuple[Story, Story]] = []
        for number, (scenario, root) in enumerate(zip(bare, roots, strict=True)):
            story = Story(number, scenario, root, deepest=faults, is_thorough=thorough, prunes=prune)
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
    saved = [write(_named(scenario, finding), save) for scenario, finding in shrunk] if save is not None else []
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

    def afford(self, wanted: list[Wanted]) -> tuple[list[Wanted], set[int]]:
        """Return those that may be made, and the stories of which some may not."""
        if self._left is None:
            return wanted, set()
        made, left = wanted[: self._left], wanted[self._left :]
        self._left -= len(made)
        return made, {each.story.number for each in left}


def _sweep_level(hands: Crew, stories: Sequence[Story], level: int, budget: _Budget, tell: Tell) -> None:
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
        longer: list[Wanted] = []
        attempts = hands.all((each.story.number, each.placements) for each in wave)
        for wanted, attempt in zip(wave, attempts, strict=True):
            story = wanted.story
            story.take(wanted, attempt)
            for changed in story.lasting(wanted.placements, attempt):
                if (story.number, changed) not in planned:
                    planned.add((story.number, changed))
                    longer.append(Wanted(story, changed))
            done += 1
            tell(what, done, total)
        pending = waiting + longer
    for story in stories:
        story.end_level(is_whole=story.number not in cut)
        _audit(hands, story)


def _without_precedent(pending: Iterable[Wanted]) -> tuple[list[Wanted], list[Wanted]]:
    """Leave out what another run stands for. Of the others, return those to be made now, and those to be looked at
    again when these are made.
    """
    now: list[Wanted] = []
    later: list[Wanted] = []
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


def _audit(hands: Crew, story: Story) -> None:
    """Make the runs of a sample of what was pruned, and those that stand for them."""
    idle = story.precedents.said_to_be_idle()
    for placements, made in zip(idle, hands.all((story.number, each) for each in idle), strict=True):
        story.broken += [(placements, finding) for finding in made.findings]
        if made.struck:
            last = placements[-1]
            story.doubts.append(f"{last.treatment.kind} at {last.fault().at} strikes, though nothing was to be struck")
    audits = story.precedents.due()
    tasks = [task for each in audits for task in ((each.number, each.precedent), (story.number, each.follower))]
    aftermaths = list(hands.aftermaths(tasks))
    for audit, one, other in zip(audits, aftermaths[::2], aftermaths[1::2], strict=True):
        story.broken += [(audit.follower, finding) for finding in other.findings]
        if differ(one.sequel, other.sequel):
            story.doubts.append(f"{audit} (sweep it with --no-prune)")


def _are_one(first: Story, other: Story) -> bool:
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


def _shrunk(hands: Crew, stories: Iterable[Story]) -> Iterator[tuple[Scenario, Finding]]:
    """For each rule that broke, the first of the runs with the fewest faults in which it did, shrunk."""
    first: dict[str, tuple[Story, tuple[Placement, ...]]] = {}
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


def _named(scenario: Scenario, finding: Finding) -> Scenario:
    return scenario.model_copy(update={"name": f"swept-{finding.rule}", "summary": finding.message})


def _verdict(stories: Sequence[Story], findings: tuple[Finding, ...]) -> tuple[Verdict, str]:
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
