"""A run as a drawing: lanes, and for every fact what is to be drawn on them. Pure; how it looks is the page's business.

Lanes stand side by side (harness, workers, network, provider, webhooks) and time runs downwards. A fact is drawn as
strokes from lane to lane, which may end before they arrive, and as glyphs on one lane. What lasted is in ``spans``.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Final

import msgspec

from fake_provider import facts
from fake_provider.facts import CommitPoint, Endpoint, Fact, Fate
from harness import history
from harness.history import Entry
from harness.report.spans import Span, spans
from harness.report.words import HARNESS, PROVIDER, short

__all__ = [
    "NETWORK",
    "WEBHOOKS",
    "Drawn",
    "Glyph",
    "Lane",
    "LaneKind",
    "Reach",
    "Stroke",
    "StrokeKind",
    "Timeline",
    "draw",
]

NETWORK: Final = "network"
WEBHOOKS: Final = "webhooks"


class LaneKind(StrEnum):
    HARNESS = "harness"
    WORKER = "worker"
    NETWORK = "network"
    PROVIDER = "provider"
    WEBHOOKS = "webhooks"


class StrokeKind(StrEnum):
    REQUEST = "request"
    ANSWER = "answer"
    EVENT = "event"  # a webhook on its way to the client
    FORGERY = "forgery"  # a webhook that the provider did not send
    RECEIPT = "receipt"  # the client's answer to a webhook
    COMMAND = "command"  # from the harness
    REPORT = "report"  # to the harness


class Reach(StrEnum):
    """How far a stroke gets."""

    ARRIVES = "arrives"
    LOST = "lost"
    CUT = "cut"
    RESET = "reset"
    ABANDONED = "abandoned"  # it arrives where nobody waits any more


class Lane(msgspec.Struct, frozen=True, kw_only=True):
    """One vertical line. ``id`` is its name, too: what facts call a worker."""

    id: str
    kind: LaneKind


class Stroke(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that goes from lane to lane."""

    kind: StrokeKind
    start: str
    end: str
    label: str
    reach: Reach = Reach.ARRIVES


class Glyph(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that happens on one lane. ``kind`` is the fact's, more or less; ``point`` is where a fault struck."""

    kind: str
    lane: str
    label: str = ""
    point: CommitPoint | None = None


class Drawn(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What to draw of one fact."""

    strokes: tuple[Stroke, ...] = ()
    glyphs: tuple[Glyph, ...] = ()


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """A whole run. ``drawn`` has one for each entry, in their order."""

    lanes: tuple[Lane, ...]
    spans: tuple[Span, ...]
    drawn: tuple[Drawn, ...]


def draw(entries: Iterable[Entry]) -> Timeline:
    """Return the drawing of a whole history."""
    known = list(entries)
    artist = _Artist(known)
    drawn = tuple(artist.fact(entry.fact) for entry in known)
    return Timeline(lanes=tuple(_lanes(known)), spans=tuple(spans(known)), drawn=drawn)


# -- lanes


def _lanes(entries: Sequence[Entry]) -> Iterator[Lane]:
    workers = {name for entry in entries if (name := getattr(entry.fact, "worker", None)) is not None}
    yield Lane(id=HARNESS, kind=LaneKind.HARNESS)
    for name in sorted(workers, key=_natural):
        yield Lane(id=name, kind=LaneKind.WORKER)
    yield Lane(id=NETWORK, kind=LaneKind.NETWORK)
    yield Lane(id=PROVIDER, kind=LaneKind.PROVIDER)
    if any(_concerns_webhooks(entry.fact) for entry in entries):
        yield Lane(id=WEBHOOKS, kind=LaneKind.WEBHOOKS)


def _natural(name: str) -> list[tuple[int, str]]:
    """A key under which w10 comes after w9."""
    return [(int(digits or 0), text) for text, digits in re.findall(r"([^0-9]*)([0-9]{0,9})", name)]


def _concerns_webhooks(fact: Fact) -> bool:
    match fact:
        case facts.EventSent() | facts.EventDelivered():
            return True
        case history.RunStarted():
            return bool(fact.contract.get("webhooks", {}).get("enabled"))
        case _:
            return False


# -- facts

_HTTP_PLACES: Final = {
    CommitPoint.BEFORE_RECEIPT: NETWORK,
    CommitPoint.RECEIVED: PROVIDER,
    CommitPoint.COMMITTED: PROVIDER,
    CommitPoint.ANSWERING: NETWORK,
    CommitPoint.DELIVERED: None,  # with the worker
}
_WEBHOOK_PLACES: Final = {
    CommitPoint.BEFORE_RECEIPT: NETWORK,
    CommitPoint.RECEIVED: None,
    CommitPoint.COMMITTED: None,
    CommitPoint.ANSWERING: NETWORK,
    CommitPoint.DELIVERED: WEBHOOKS,
}
_REACH: Final = {
    Fate.DELIVERED: Reach.ARRIVES,
    Fate.LOST: Reach.LOST,
    Fate.CUT: Reach.CUT,
    Fate.RESET: Reach.RESET,
    Fate.ABANDONED: Reach.ABANDONED,
}
_ON_A_WORKER: Final = {
    history.WorkerStarted: "started",
    history.WorkerStopped: "frozen",
    history.WorkerResumed: "resumed",
    history.SecretSaid: "secret",
    history.SubjectComplained: "complaint",
}


class _Artist:
    """Knows of each exchange and delivery what became of it, and then draws one fact after the other."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._ends: dict[int, facts.AnswerEnded] = {}
        self._deliveries: dict[int, facts.EventDelivered] = {}
        self._stopped_on_the_way: set[int] = set()  # exchanges whose request a fault met before it was received
        self._copies: set[int] = set()
        for entry in entries:
            match entry.fact:
                case facts.AnswerEnded() as fact:
                    self._ends[fact.exchange] = fact
                case facts.EventDelivered() as fact:
                    self._deliveries[fact.delivery] = fact
                case facts.FaultStruck(point=CommitPoint.BEFORE_RECEIPT, exchange=int(exchange)):
                    self._stopped_on_the_way.add(exchange)
                case facts.RequestSent(copy_of=int()) as fact:
                    self._copies.add(fact.exchange)

    def fact(self, fact: Fact) -> Drawn:
        match fact:
            case facts.RequestSent():
                return _one(self._request(fact))
            case facts.AnswerEnded():
                return _one(self._answer(fact))
            case facts.EventSent():
                return _one(self._event(fact))
            case facts.EventDelivered(worker=str(worker), status=int(status)):
                return _one(Stroke(kind=StrokeKind.RECEIPT, start=worker, end=WEBHOOKS, label=str(status)))
            case facts.EventDelivered():
                return _on(WEBHOOKS, "unanswered", "no answer")
            case facts.FaultStruck():
                return Drawn(glyphs=(_fault(fact),))
            case _:
                return _of_the_provider(fact) or _of_the_harness(fact) or _of_a_worker(fact)

    def _never_received(self, exchange: int) -> bool:
        end = self._ends.get(exchange)
        return exchange in self._stopped_on_the_way and (end is None or end.status is None)

    def _request(self, fact: facts.RequestSent) -> Stroke:
        label = str(fact.endpoint)
        if fact.endpoint is Endpoint.CREATE:
            label += f", token {fact.token[:6]}…" if fact.token else ", no token"
        end, reach = PROVIDER, Reach.ARRIVES
        if fact.origin is not None:
            end, label = NETWORK, f"{label}, elsewhere"
        elif self._never_received(fact.exchange):
            told = self._ends.get(fact.exchange)
            reach = Reach.RESET if told is not None and told.fate is Fate.RESET else Reach.LOST
        start = NETWORK if fact.copy_of is not None else fact.worker
        return Stroke(kind=StrokeKind.REQUEST, start=start, end=end, label=label, reach=reach)

    def _answer(self, fact: facts.AnswerEnded) -> Stroke:
        words = [str(fact.status) if fact.status is not None else "no answer"]
        words += [word for word in (fact.problem, fact.remote_state) if word]
        return Stroke(
            kind=StrokeKind.ANSWER,
            start=NETWORK if self._never_received(fact.exchange) else PROVIDER,
            end=NETWORK if fact.exchange in self._copies else fact.worker,
            label=" ".join(words),
            reach=_REACH[fact.fate],
        )

    def _event(self, fact: facts.EventSent) -> Stroke:
        delivered = self._deliveries.get(fact.delivery)
        again = f", attempt {fact.attempt}" if fact.attempt > 1 else ""
        return Stroke(
            kind=StrokeKind.EVENT if fact.genuine else StrokeKind.FORGERY,
            start=WEBHOOKS,
            end=fact.worker or (delivered.worker if delivered else None) or NETWORK,
            label=f"{fact.type}{again}",
            reach=Reach.ARRIVES if delivered is not None and delivered.status is not None else Reach.LOST,
        )


def _one(stroke: Stroke) -> Drawn:
    return Drawn(strokes=(stroke,))


def _on(lane: str, kind: str, label: str = "") -> Drawn:
    return Drawn(glyphs=(Glyph(kind=kind, lane=lane, label=label),))


def _fault(fact: facts.FaultStruck) -> Glyph:
    places = _WEBHOOK_PLACES if fact.endpoint is Endpoint.WEBHOOK else _HTTP_PLACES
    place = None if fact.endpoint is Endpoint.STORE else places[fact.point]
    return Glyph(kind="fault", lane=place or fact.worker or NETWORK, label=fact.kind, point=fact.point)


def _of_the_provider(fact: Fact) -> Drawn | None:
    match fact:
        case facts.JobCreated():
            return _on(PROVIDER, "created", short(fact.job))
        case facts.JobMoved():
            return _on(PROVIDER, "moved", fact.after)
        case facts.CancelTaken():
            return _on(PROVIDER, "cancel", f"cancel: {fact.effect.replace('_', ' ')}")
        case facts.ResultRead():
            return _on(PROVIDER, "read", f"{fact.size_bytes} bytes")
        case history.LedgerRead():
            return _one(Stroke(kind=StrokeKind.REPORT, start=PROVIDER, end=HARNESS, label=f"ledger: {fact.state}"))
        case _:
            return None


def _of_the_harness(fact: Fact) -> Drawn | None:
    match fact:
        case history.Commanded():
            label = f"{fact.command} {fact.operation}"
            return _one(Stroke(kind=StrokeKind.COMMAND, start=HARNESS, end=fact.worker, label=label))
        case history.RunStarted():
            return _on(HARNESS, "begin")
        case facts.FaultsHealed():
            return _on(HARNESS, "healed", "healed")
        case history.RunEnded():
            return _on(HARNESS, "end")
        case _:
            return None


def _of_a_worker(fact: Fact) -> Drawn:
    match fact:
        case history.StateRecorded() if fact.before != fact.after:
            return _on(fact.worker, "state", fact.after)
        case history.StateRecorded():
            return _on(fact.worker, "note", fact.entry)
        case history.LeaseNoted():
            return _on(fact.worker, "lease", f"lease {fact.what}")
        case history.ClockSet():
            return _on(fact.worker, "clock", f"clock {fact.ahead_s:+g} s" if fact.ahead_s else "clock right")
        case history.WorkerEnded():
            return _on(fact.worker, "ended", fact.how)
        case history.ProcessReaped():
            return _on(fact.worker, "reaped", fact.status)
        case history.CommandRefused():
            label = f"refuses to {fact.command}"
            return _one(Stroke(kind=StrokeKind.REPORT, start=fact.worker, end=HARNESS, label=label))
        case history.Claimed():
            label = f"claims {fact.state}"
            return _one(Stroke(kind=StrokeKind.REPORT, start=fact.worker, end=HARNESS, label=label))
        case _:
            kind = _ON_A_WORKER[type(fact)]  # a test draws the whole vocabulary
            return _on(getattr(fact, "worker", HARNESS), kind, kind)
