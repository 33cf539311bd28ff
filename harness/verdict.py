"""Pass, fail or unknown: what a run comes to, and how verdicts of several runs merge.

A verdict is never more than was seen. A planned fault that did not strike, a run in which no rule had anything to
judge, a crashed rule or a subject that never called make it ``unknown``, not ``pass``.
"""

from collections.abc import Iterable
from enum import StrEnum

import msgspec

__all__ = ["Finding", "LeftOut", "NotJudged", "Outcome", "SweptStory", "Verdict", "decide", "merge"]


class Verdict(StrEnum):
    PASS = "pass"  # noqa: S105  not a password
    FAIL = "fail"
    UNKNOWN = "unknown"

    @property
    def exit_code(self) -> int:
        """0 pass, 1 fail, 3 unknown; 2 is kept for wrong usage."""
        return {"pass": 0, "fail": 1, "unknown": 3}[self.value]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One breach of a rule, with the facts that prove it."""

    rule: str
    requirement: str  # "W3.4"
    message: str  # what happened, where it is proved, what should have happened
    facts: tuple[int, ...]  # seq of the entries that prove it


class NotJudged(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that could not be judged in a run, and what it would have needed to see."""

    rule: str
    needs: str


class LeftOut(msgspec.Struct, frozen=True, kw_only=True):
    """A scenario that does not apply to the client and was not run. No verdict on anyone."""

    scenario: str
    mode: str
    reason: str


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What one run of one scenario came to. Everything but the history itself."""

    scenario: str
    mode: str
    seed: int
    verdict: Verdict
    reason: str
    rules_judged: int
    rules_not_judged: tuple[NotJudged, ...]
    faults_planned: int
    faults_struck: int
    findings: tuple[Finding, ...]
    history_sha256: str
    reproduce: str  # one command line
    known_failing: tuple[Finding, ...] = ()  # listed as known, and so no part of the verdict
    doubts: tuple[str, ...] = ()  # why the run would prove nothing if it had no findings


class SweptStory(msgspec.Struct, frozen=True, kw_only=True):
    """How far a sweep came with one scenario. ``placements`` is the sum of the other counts."""

    scenario: str
    placements: int  # faults that could be placed, in the runs that were made
    pruned: int  # those that needed no run
    same_reaction: int  # of these: in a run in which the client did the same as in one that is gone on with
    same_situation: int  # of these: the same fault is tried in the same situation, be it in another story
    nothing_to_strike: int  # of these: no such fault could have struck there, by what the run had come to
    audited: int  # of the last three: run all the same, to see whether it is so
    runs_made: int
    outcomes: int  # of these: the client and the provider did what they did in no other, or did it at another time
    not_made: int  # by the limit on runs


def decide(
    *,
    findings: Iterable[Finding],
    doubts: Iterable[str],
) -> tuple[Verdict, str]:
    """Return the verdict and its reason.

    A breach that was proved stays proved whatever else went wrong; only without one do doubts make it ``unknown``.

    Args:
        findings: breaches.
        doubts: reasons for which a clean run would prove nothing.
    """
    found = list(findings)
    if found:
        rules = sorted({finding.rule for finding in found})
        return Verdict.FAIL, f"broken: {', '.join(rules)}"
    doubted = list(doubts)
    if doubted:
        return Verdict.UNKNOWN, "; ".join(doubted)
    return Verdict.PASS, "every rule that had something to judge holds"


def merge(verdicts: Iterable[Verdict]) -> Verdict:
    """One fail makes it fail; else one unknown, or no verdict at all, makes it unknown."""
    seen = set(verdicts)
    if Verdict.FAIL in seen:
        return Verdict.FAIL
    if not seen or Verdict.UNKNOWN in seen:
        return Verdict.UNKNOWN
    return Verdict.PASS
