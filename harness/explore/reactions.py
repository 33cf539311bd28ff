"""What a client and the world did, told apart from what the client was shown: the facts that count, and digests.

Pure. Ids are drawn, and how much was drawn before them differs from run to run: they are told by the order in which
they come up, not as they are.
"""

import hashlib
import re
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from fake_provider.facts import (
    AnswerEnded,
    CancelTaken,
    EventDelivered,
    EventSent,
    Fact,
    FaultsHealed,
    JobCreated,
    JobMoved,
    RequestSent,
    ResultRead,
)
from fake_provider.outlook import comparable_s
from harness.history import (
    Claimed,
    ClockSet,
    CommandRefused,
    Entry,
    History,
    LeaseNoted,
    LedgerRead,
    StateRecorded,
    SubjectComplained,
    WorkerEnded,
    WorkerResumed,
    WorkerStarted,
    WorkerStopped,
)

__all__ = ["Done", "Sequel", "clock_jumped", "differ", "midst", "quiet_from", "reaction", "sequel", "without_ids"]


class Done(msgspec.Struct, frozen=True):
    """One thing that was done, so many seconds after a moment."""

    in_s: float
    told: bytes
    is_chosen: bool = False  # by the harness: when it was done, at least
    by_provider: bool = False  # or by the network, of itself


class Sequel(msgspec.Struct, frozen=True):
    """What followed upon a moment."""

    done: tuple[Done, ...]
    asked: tuple[bytes, ...]  # what the client claimed in the end, and the ledger
    lasted_s: float  # until the end of the run


_UNSAID: Final = {
    RequestSent: ("credential", "copy_of"),
    StateRecorded: ("cause", "reason"),  # these name the answer, which is what may differ
    Claimed: ("explanation",),
    CommandRefused: ("reason",),
    JobMoved: ("cause",),
    ResultRead: ("sha256", "size_bytes"),
    EventSent: ("delivery", "event"),
    EventDelivered: ("delivery", "event"),
    WorkerEnded: ("detail",),
}
"""Fields of facts that are not part of a reaction: they tell what the client was shown, or merely count."""

_SAID: Final[dict[type[Fact], tuple[str, ...]]] = {
    kind: tuple(name for name in kind.__struct_fields__ if name not in {*_UNSAID.get(kind, ()), "exchange"})
    for kind in (
        CancelTaken,
        Claimed,
        ClockSet,
        CommandRefused,
        EventDelivered,
        EventSent,
        JobCreated,
        JobMoved,
        LeaseNoted,
        LedgerRead,
        RequestSent,
        ResultRead,
        StateRecorded,
        SubjectComplained,
        WorkerEnded,
        WorkerResumed,
        WorkerStarted,
        WorkerStopped,
    )
}

_BY_PROVIDER: Final = (CancelTaken, EventDelivered, EventSent, JobCreated, JobMoved, ResultRead)

_ENCODER: Final = msgspec.json.Encoder()
_ID: Final = re.compile(rb"(?<![0-9a-f.])[0-9a-f]{16,}")  # not the digits of a fraction
_SAME_S: Final = 0.001
"""Times that differ by less are one: the last digits of a time of day are lost when seconds are taken from it."""


def reaction(history: History, in_hand: bytes) -> bytes:
    """Return a digest of everything that was done in a run, each thing at its instant, and of what was still to come
    when the faults were healed: what the provider had in hand, and the exchanges under way.
    """
    said: list[Any] = []
    jobs: list[str] = []
    under_way: dict[int, tuple[str, str]] = {}
    is_healed = False
    for entry in history:
        fact = entry.fact
        is_healed = is_healed or isinstance(fact, FaultsHealed)
        if isinstance(fact, RequestSent) and not is_healed:
            under_way[fact.exchange] = (fact.endpoint, fact.worker)
        elif isinstance(fact, AnswerEnded) and not is_healed:
            under_way.pop(fact.exchange, None)
        fields = _SAID.get(type(fact))
        if fields is not None:
            said.append((type(fact).__name__, entry.at, [getattr(fact, field) for field in fields]))
            if isinstance(fact, JobCreated):
                jobs.append(fact.job)
    text = _ENCODER.encode((said, list(under_way.values())))
    for number, job in enumerate(jobs):
        text = text.replace(job.encode(), b"job %d" % number)
    return hashlib.sha256(text + in_hand).digest()[:16]


def quiet_from(history: History) -> float:
    """Return when the last thing was done, in seconds since the start; what the harness asked for at the end, and that
    it set clocks, apart.
    """
    done = (
        entry.at
        for entry in reversed(list(history))
        if type(entry.fact) in _SAID and not isinstance(entry.fact, Claimed | ClockSet | LedgerRead)
    )
    return next(done, 0.0)


def clock_jumped(history: History) -> float | None:
    """Return when a worker's clock was last set wrong, in seconds since the start; None if none was."""
    jumps = (each.at for each in reversed(list(history)) if isinstance(each.fact, ClockSet) and each.fact.ahead_s)
    return next(jumps, None)


def without_ids(value: object, known: dict[bytes, bytes] | None = None) -> bytes:
    """Return ``value`` as JSON in which each id is the number of those that came up before it.

    Args:
        known: the ids that came up already; added to.
    """
    ids: dict[bytes, bytes] = {} if known is None else known
    return _ID.sub(lambda found: ids.setdefault(found[0], b"id %d" % len(ids)), _ENCODER.encode(value))


def midst(history: History, since: int, at: float) -> list[object] | None:
    """Return what is under way at a moment, as what came of it shows: the rest of that instant, how the exchanges and
    deliveries ended that had begun, and what frozen workers did in the instant in which they woke up. None if the run
    was over before it showed.

    Args:
        since: how many facts there were.
        at: seconds since the start.
    """
    before, after = _split(history, since)
    begun = {entry.fact.exchange for entry in before if isinstance(entry.fact, RequestSent)}
    begun -= {entry.fact.exchange for entry in before if isinstance(entry.fact, AnswerEnded)}
    sent = {entry.fact.delivery for entry in before if isinstance(entry.fact, EventSent)}
    sent -= {entry.fact.delivery for entry in before if isinstance(entry.fact, EventDelivered)}
    frozen: set[str] = set()
    for entry in before:
        if isinstance(entry.fact, WorkerStopped):
            frozen.add(entry.fact.worker)
        elif isinstance(entry.fact, WorkerResumed | WorkerEnded):
            frozen.discard(entry.fact.worker)
    wakes = [entry.at for entry in after if isinstance(entry.fact, WorkerResumed) and entry.fact.worker in frozen]
    instants = [at, *wakes]
    base = _fences(before)
    found: list[object] = []
    for entry in after:
        fact, in_s = entry.fact, comparable_s(entry.at - at) + 0.0
        if isinstance(fact, AnswerEnded) and fact.exchange in begun:
            begun.remove(fact.exchange)
            found.append((in_s, fact.endpoint, fact.worker, fact.fate, fact.status))
        elif isinstance(fact, EventDelivered) and fact.delivery in sent:
            sent.remove(fact.delivery)
            found.append((in_s, fact.worker, fact.status))
        elif not isinstance(fact, Claimed | LedgerRead) and any(abs(entry.at - one) <= _SAME_S for one in instants):
            told = _told(fact, base)
            if told is not None:
                found.append((in_s, told))
    return None if begun or sent else found


def sequel(history: History, since: int, at: float) -> Sequel:
    """Return all that was done from a moment on, and apart what the harness asked for: the last claim about each
    operation, whoever made it, and the ledger. What was done in one instant is in no order of its own.
    """
    before, after = _split(history, since)
    base, is_healed = _fences(before), False
    claims: dict[str, list[Any]] = {}
    ledger: list[list[Any]] = []
    done: list[tuple[Fact, float, bool, list[Any]]] = []
    for entry in after:
        fact, in_s = entry.fact, entry.at - at
        is_healed = is_healed or isinstance(fact, FaultsHealed)
        told = _told(fact, base)
        if told is None or (is_healed and isinstance(fact, ClockSet)):  # healing sets clocks right
            continue
        if isinstance(fact, Claimed):
            claims[fact.operation] = told
        elif isinstance(fact, LedgerRead):
            ledger.append(told)
        else:
            done.append((fact, in_s, is_healed, told))
    done.sort(key=lambda each: (round(each[1], 3), _ID.sub(b"id", _ENCODER.encode(each[3]))))
    ids: dict[bytes, bytes] = {}
    return Sequel(
        done=tuple(
            Done(in_s, without_ids(told, ids), is_chosen=is_healed, by_provider=isinstance(fact, _BY_PROVIDER))
            for fact, in_s, is_healed, told in done
        ),
        asked=tuple(without_ids(each, ids) for each in (*(claims[name] for name in sorted(claims)), *ledger)),
        lasted_s=history[-1].at - at,
    )


def _split(history: History, since: int) -> tuple[list[Entry], list[Entry]]:
    entries = list(history)
    return entries[:since], entries[since:]


def _fences(entries: Iterable[Entry]) -> dict[str, int]:
    """The last fence of each operation."""
    return {entry.fact.operation: entry.fact.fence for entry in entries if isinstance(entry.fact, LeaseNoted)}


def _told(fact: Fact, fences: dict[str, int]) -> list[Any] | None:
    """Tell what was done without what merely counts from the start of the run; None if nothing was."""
    fields = _SAID.get(type(fact))
    if fields is None:
        return None
    values = {field: getattr(fact, field) for field in fields}
    if isinstance(fact, LeaseNoted):
        values["fence"] -= fences.get(fact.operation, 0)
    elif isinstance(fact, Claimed):
        del values["worker"]
    elif isinstance(fact, WorkerStarted):
        del values["life"]
    elif isinstance(fact, ResultRead):
        del values["time"]
    return [type(fact).__name__, *values.values()]


def differ(one: Sequel, other: Sequel) -> bool:
    """Whether two sequels are not the same. Times that the harness chose in either of them are not compared; nor is
    what the provider did in one of them when the other was over, since the harness chose that, too.
    """
    until = min(one.lasted_s, other.lasted_s) - _SAME_S
    ours, theirs = ([each for each in run.done if each.in_s < until or not each.by_provider] for run in (one, other))
    return (
        one.asked != other.asked
        or len(ours) != len(theirs)
        or any(
            mine.told != yours.told or not (mine.is_chosen or yours.is_chosen or abs(mine.in_s - yours.in_s) <= _SAME_S)
            for mine, yours in zip(ours, theirs, strict=True)
        )
    )
