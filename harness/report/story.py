"""A run in words: the noteworthy facts of a history as lines, oldest first, with faults marked and findings pinned.

From facts alone, so that a history file tells the same story years later. Routine is folded: a request and its answer
are one line when nothing came between; status reads that saw the same are one line. A fact that proves a finding is
always told.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

import msgspec

from fake_provider import facts
from fake_provider.facts import Endpoint, Fact, Fate
from harness import history
from harness.history import Entry
from harness.report.words import answer, describe, short
from harness.verdict import Finding

__all__ = ["Line", "Mark", "tell"]


class Mark(StrEnum):
    """How a line is to be set off."""

    PLAIN = "plain"
    FAULT = "fault"
    NEXT = "next"  # the first thing the client did after a fault struck its operation or its worker
    FINDING = "finding"


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One noteworthy event. ``at`` is in seconds from the start; ``facts`` are the entries it tells."""

    at: float
    actor: str
    text: str
    mark: Mark = Mark.PLAIN
    facts: tuple[int, ...]


_LOUD: Final = (
    facts.FaultsHealed,
    facts.CancelTaken,
    facts.EventSent,
    history.RunStarted,
    history.Commanded,
    history.WorkerStarted,
    history.ClockSet,
    history.ProcessReaped,
    history.CommandRefused,
    history.SecretSaid,
    history.SubjectComplained,
    history.Claimed,
    history.LedgerRead,
    history.RunEnded,
)
"""Facts that are always told. What else is, ``_Teller._matters`` decides."""

_TURNS: Final = frozenset({"succeeded", "failed", "cancelled", "cancelling"})
"""States of a job whose entering is told; that it runs goes without saying."""


def tell(entries: Iterable[Entry], findings: Sequence[Finding] = ()) -> list[Line]:
    """Return the story of a run.

    Args:
        entries: a whole history.
        findings: what the rules found in it; each is pinned under the last fact that proves it.
    """
    known = list(entries)
    cited = frozenset(seq for finding in findings for seq in finding.facts)
    return list(_pinned(_Teller(known, cited).lines(), findings))


@dataclass(kw_only=True)
class _Draft:
    """A line that a later fact may still complete."""

    at: float
    actor: str
    text: str
    mark: Mark
    seqs: list[int]
    exchange: int | None = None
    event: str | None = None
    reading: tuple[str, str] | None = None  # a status read: about which job, and what it saw
    times: int = 1

    def finished(self) -> Line:
        text = self.text if self.times == 1 else f"{self.text} ({self.times} reads alike)"
        return Line(at=self.at, actor=self.actor, text=text, mark=self.mark, facts=tuple(self.seqs))


@dataclass(kw_only=True)
class _Memory:
    """What the words of a later line depend on."""

    answers: dict[int, facts.AnswerEnded]  # by exchange; the future, too: a story is told with hindsight
    requests: dict[int, facts.RequestSent] = field(default_factory=dict)
    results: dict[str, str] = field(default_factory=dict)  # job: sha256 of the result as made
    jobs: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))  # by operation
    tries: defaultdict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))
    tokens: dict[str, str] = field(default_factory=dict)  # by operation: the last one sent
    holders: dict[str, str] = field(default_factory=dict)  # operation: the worker that last took its lease
    frozen: set[str] = field(default_factory=set)  # workers
    struck: set[str] = field(default_factory=set)  # operations and workers that did nothing since a fault struck them


class _Teller:
    """Goes through a history once."""

    def __init__(self, entries: Sequence[Entry], cited: frozenset[int]) -> None:
        self._entries = entries
        self._cited = cited
        self._memory = _Memory(
            answers={entry.fact.exchange: entry.fact for entry in entries if isinstance(entry.fact, facts.AnswerEnded)}
        )
        self._drafts: list[_Draft] = []

    def lines(self) -> list[Line]:
        for entry in self._entries:
            self._take(entry)
        return [draft.finished() for draft in self._drafts]

    def _take(self, entry: Entry) -> None:
        match entry.fact:
            case facts.RequestSent() as fact:
                self._request(entry, fact)
            case facts.AnswerEnded() as fact:
                self._answer(entry, fact)
            case facts.EventDelivered() as fact:
                self._delivered(entry, fact)
            case facts.FaultStruck() as fact:
                self._memory.struck.update(who for who in (fact.operation, fact.worker) if who)
                self._add(entry, mark=Mark.FAULT)
            case history.StateRecorded() as fact if fact.before is not None and fact.before != fact.after:
                self._add(entry, mark=self._next(fact.operation, fact.worker))
            case history.LeaseNoted() as fact if self._changes_hands(fact):
                self._add(entry, mark=self._next(fact.operation, fact.worker))
            case fact if self._matters(fact) or entry.seq in self._cited:
                self._add(entry)

    def _matters(self, fact: Fact) -> bool:
        """Whether a fact that is neither request nor answer is worth a line. Remembers what it needs to."""
        memory = self._memory
        match fact:
            case facts.JobCreated():
                memory.jobs[fact.operation or ""] += 1
                told = memory.answers.get(fact.exchange)
                # The answer tells it, if it came through; a second job for one operation is told in any case.
                return memory.jobs[fact.operation or ""] > 1 or told is None or told.fate is not Fate.DELIVERED
            case facts.JobMoved():
                if fact.result_sha256 is not None:
                    memory.results[fact.job] = fact.result_sha256
                return fact.after in _TURNS
            case facts.ResultRead():
                return fact.time > 1 or fact.sha256 != memory.results.get(fact.job, fact.sha256)
            case history.StateRecorded():
                return fact.before is None or fact.entry == "note"
            case history.WorkerStopped():
                memory.frozen.add(fact.worker)
                return True
            case history.WorkerResumed() | history.WorkerEnded():
                memory.frozen.discard(fact.worker)
                return True
            case _:
                return isinstance(fact, _LOUD)

    def _changes_hands(self, fact: history.LeaseNoted) -> bool:
        """Whether a worker lost its lease, or took one that was another worker's."""
        before = self._memory.holders.get(fact.operation)
        if fact.what == "taken":
            self._memory.holders[fact.operation] = fact.worker
        return fact.what == "lost" or (fact.what == "taken" and before not in {None, fact.worker})

    def _add(self, entry: Entry, text: str | None = None, mark: Mark = Mark.PLAIN) -> _Draft:
        sentence = describe(entry.fact)
        draft = _Draft(
            at=entry.at, actor=sentence.actor, text=sentence.text if text is None else text, mark=mark, seqs=[entry.seq]
        )
        if isinstance(entry.fact, facts.EventSent):
            draft.event = f"{entry.fact.event} {entry.fact.delivery}"
        self._drafts.append(draft)
        return draft

    def _next(self, *who: str | None) -> Mark:
        """NEXT for the first act since a fault struck one of ``who``."""
        touched = self._memory.struck.intersection(name for name in who if name)
        self._memory.struck -= touched
        return Mark.NEXT if touched else Mark.PLAIN

    def _request(self, entry: Entry, fact: facts.RequestSent) -> None:
        memory = self._memory
        memory.requests[fact.exchange] = fact
        text = f"{fact.endpoint} of {fact.operation or fact.job or fact.path}"
        if fact.copy_of is not None:
            text += ", the same request delivered once more by the network"
            self._add(entry, text).exchange = fact.exchange
            return
        about = (str(fact.endpoint), fact.operation or fact.job or "")
        memory.tries[about] += 1
        if fact.endpoint is Endpoint.CREATE:
            if memory.tries[about] > 1:
                text += f", attempt {memory.tries[about]}"
            text += self._token(fact)
        self._add(entry, text, self._next(fact.operation, fact.worker)).exchange = fact.exchange

    def _token(self, fact: facts.RequestSent) -> str:
        before = self._memory.tokens.get(fact.operation or "")
        if fact.token is None:
            return ", no token"
        self._memory.tokens[fact.operation or ""] = fact.token
        if before is None:
            return f", token {short(fact.token)}"
        return ", the same token" if before == fact.token else f", ANOTHER token {short(fact.token)}"

    def _answer(self, entry: Entry, fact: facts.AnswerEnded) -> None:
        told = answer(fact)
        if fact.worker in self._memory.frozen:
            told += ", to be read once it is resumed"
        last = self._drafts[-1] if self._drafts else None
        if last is None or last.exchange != fact.exchange:
            request = self._memory.requests.get(fact.exchange)
            about = fact.operation or (request.operation if request else None) or fact.job or "?"
            self._add(entry, f"{fact.endpoint} of {about}: {told}")
            return
        last.text += f": {told}"
        last.seqs.append(entry.seq)
        if fact.endpoint is Endpoint.STATUS and last.mark is Mark.PLAIN:
            last.reading = (last.actor, last.text)
            self._fold_reading()

    def _fold_reading(self) -> None:
        """Make one line of the last two if both are status reads that saw the same and prove nothing."""
        if len(self._drafts) < 2:
            return
        before, last = self._drafts[-2:]
        if before.reading == last.reading and self._cited.isdisjoint([*before.seqs, *last.seqs]):
            before.times += 1
            before.seqs += last.seqs
            self._drafts.pop()

    def _delivered(self, entry: Entry, fact: facts.EventDelivered) -> None:
        last = self._drafts[-1] if self._drafts else None
        if last is None or last.event != f"{fact.event} {fact.delivery}":
            self._add(entry)
            return
        last.text += (
            ": no answer" if fact.status is None else f": {fact.worker or 'the receiver'} answers {fact.status}"
        )
        last.seqs.append(entry.seq)


def _pinned(lines: Sequence[Line], findings: Sequence[Finding]) -> Iterator[Line]:
    under: defaultdict[int, list[Finding]] = defaultdict(list)
    for finding in findings:
        proof = max(finding.facts, default=-1)
        # Every cited fact is on a line; a finding that cites none stands under the last line.
        home = next((number for number, line in enumerate(lines) if proof in line.facts), len(lines) - 1)
        under[home].append(finding)
    for number, line in enumerate(lines):
        yield line
        for finding in under[number]:
            yield Line(
                at=line.at,
                actor=finding.rule,
                text=f"{finding.requirement}: {finding.message}",
                mark=Mark.FINDING,
                facts=finding.facts,
            )
