"""What lasts in a run: the local state of an operation, the remote state of a job, and the life, the freezes and the
leases of a worker. Pure, from facts alone.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from enum import StrEnum

import msgspec

from fake_provider import facts
from harness import history
from harness.history import Entry

__all__ = ["Span", "SpanKind", "spans"]


class SpanKind(StrEnum):
    LOCAL = "local"  # track: an operation; label: its state as the client recorded it
    REMOTE = "remote"  # track: a job; label: its state at the provider
    ALIVE = "alive"  # track: a worker
    FROZEN = "frozen"  # track: a worker
    LEASE = "lease"  # track: a worker; label: the operation


class Span(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What lasted from the fact ``since`` to the fact ``until``; to the end, if that is None."""

    kind: SpanKind
    track: str
    since: int
    until: int | None = None
    label: str = ""


class _Track:
    """What lasts on one track: at most one span at a time."""

    def __init__(self, kind: SpanKind, track: str) -> None:
        self._kind = kind
        self._track = track
        self._since: int | None = None
        self._label = ""
        self.spans: list[Span] = []

    def begin(self, seq: int, label: str = "") -> None:
        self.end(seq)
        self._since, self._label = seq, label

    def end(self, seq: int | None) -> None:
        if self._since is not None:
            self.spans.append(Span(kind=self._kind, track=self._track, since=self._since, until=seq, label=self._label))
        self._since = None


class _Tracks:
    """All tracks, in the order in which something was first seen on them."""

    def __init__(self) -> None:
        self._tracks: dict[tuple[SpanKind, str], _Track] = {}

    def at(self, kind: SpanKind, track: str) -> _Track:
        return self._tracks.setdefault((kind, track), _Track(kind, track))

    def finished(self) -> Iterator[Span]:
        for track in self._tracks.values():
            track.end(None)
            yield from track.spans


def spans(entries: Iterable[Entry]) -> Iterator[Span]:
    """Yield what lasted in a whole history, one track after the other."""
    tracks = _Tracks()
    leases = _Leases()
    for entry in entries:
        leases.see(entry)
        match entry.fact:
            case history.StateRecorded(before=before, after=after) as fact if before != after:
                tracks.at(SpanKind.LOCAL, fact.operation).begin(entry.seq, after)
            case facts.JobCreated() as fact:
                tracks.at(SpanKind.REMOTE, fact.job).begin(entry.seq, "queued")
            case facts.JobMoved() as fact:
                tracks.at(SpanKind.REMOTE, fact.job).begin(entry.seq, fact.after)
            case history.WorkerStarted() as fact:
                tracks.at(SpanKind.ALIVE, fact.worker).begin(entry.seq)
            case history.WorkerEnded() as fact:
                tracks.at(SpanKind.ALIVE, fact.worker).end(entry.seq)
                tracks.at(SpanKind.FROZEN, fact.worker).end(entry.seq)
            case history.WorkerStopped() as fact:
                tracks.at(SpanKind.FROZEN, fact.worker).begin(entry.seq)
            case history.WorkerResumed() as fact:
                tracks.at(SpanKind.FROZEN, fact.worker).end(entry.seq)
    yield from tracks.finished()
    yield from leases.finished()


class _Leases:
    """Leases last until they are given up, lost, or over: a frozen worker's ends though nobody says so."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, str], tuple[int, float]] = {}  # worker and operation: since which fact, until when
        self._over: defaultdict[tuple[str, str], list[Span]] = defaultdict(list)

    def see(self, entry: Entry) -> None:
        for who in [who for who, (_, until) in self._held.items() if until <= entry.at]:
            self._close(who, entry.seq)
        match entry.fact:
            case history.LeaseNoted(what="taken" | "renewed") as fact:
                who = (fact.worker, fact.operation)
                since, _ = self._held.get(who, (entry.seq, 0.0))
                self._held[who] = (since, entry.at + fact.lasts_s)
            case history.LeaseNoted() as fact:
                self._close((fact.worker, fact.operation), entry.seq)

    def _close(self, who: tuple[str, str], seq: int | None) -> None:
        held = self._held.pop(who, None)
        if held is not None:
            worker, operation = who
            self._over[who].append(Span(kind=SpanKind.LEASE, track=worker, since=held[0], until=seq, label=operation))

    def finished(self) -> Iterator[Span]:
        for who in list(self._held):
            self._close(who, None)
        for spans in self._over.values():
            yield from spans
