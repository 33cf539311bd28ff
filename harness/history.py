"""Facts of both sides in one order: the history of a run, the only thing rules look at.

The provider's side of the vocabulary is ``fake_provider.facts``; here is what the harness did and what the client
under test said of itself, the order of it all, and its form on disk (JSON lines, one entry a line, byte for byte
reproducible).
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final, Self, cast, get_args

import msgspec

from fake_provider import facts
from fake_provider.facts import Fact

__all__ = [
    "AnyFact",
    "Claimed",
    "ClockSet",
    "CommandRefused",
    "Commanded",
    "Entry",
    "History",
    "HistoryError",
    "LeaseNoted",
    "LedgerRead",
    "ProcessReaped",
    "RunEnded",
    "RunStarted",
    "SecretSaid",
    "StateRecorded",
    "SubjectComplained",
    "WorkerEnded",
    "WorkerResumed",
    "WorkerStarted",
    "WorkerStopped",
]


class RunStarted(Fact, frozen=True, kw_only=True, omit_defaults=True, tag="run_started"):
    """The first fact of every history: what was agreed before anything happened."""

    scenario: str
    mode: str  # "simulated", "patched", "process"
    seed: int
    contract: dict[str, Any]  # a Contract as JSON
    timing: dict[str, float]  # the client's clocks, seconds: see scenarios.model.Timing
    credential: str  # "sha256:…" of the Authorization header the client was given, first 16 hex digits
    origin: str  # the only origin that credential is for


class Commanded(Fact, frozen=True, kw_only=True, omit_defaults=True, tag="commanded"):
    """The harness told a worker to do something, as a person or a program would."""

    command: str  # "submit", "cancel", "reconcile", "decide"
    operation: str
    worker: str
    fingerprint: str | None = None  # submit: "sha256:…" of the canonical request
    asked: str | None = None  # submit: "sha256:…" of what the job is to do, as in a create's RequestSent
    repeat_of: bool = False  # submit: the same operation with the same request once more
    changed: bool = False  # submit: a known operation id with another request, which must be refused
    decided: str | None = None  # decide: the local state that the operation is to go on from


class WorkerStarted(Fact, frozen=True, kw_only=True, omit_defaults=True, tag="worker_started"):
    worker: str
    life: int = 1  # counts the starts of this worker


class WorkerStopped(Fact, frozen=True, kw_only=True, omit_defaults=True, tag="worker_stopped"):
    """The worker's host froze it (SIGSTOP): it does nothing, and its timers run on."""

    worker: str


class WorkerResumed(Fact, frozen=True, kw_only=True, omit_defaults=True, tag="worker_resumed"):
    worker: str


class ClockSet(Fact, frozen=True, kw_only=True, omit_defaults=True, tag="clock_set"):
    """The wall clock of the worker's host was set wrong, or right again. It stays so through the worker's lives."""

    worker: str
    ahead_s: float  # of true time; negative: behind; 0: right


class WorkerEnded(Fact, frozen=True, kw_only=True, omit_defaults=True, tag="worker_ended"):
    """The worker is gone. ``how``: "killed" (SIGKILL), "stopped" (asked to), "crashed" (by itself)."""

    worker: str
    how: str
    detail: str | None = None


class ProcessReaped(Fact, frozen=True, kw_only=True, omit_defaults=True, tag="process_reaped"):
    """The operating system handed back a worker's process: the proof of how it ended. Process mode only."""

    worker: str
    status: str  # "signal 9", "exit status 0"


class StateRecorded(Fact, frozen=True, kw_only=True, omit_defaults=True, tag="state_recorded"):
    """The client made a history entry durable (W5.3). ``before == after`` for an entry that is no transition."""

    worker: str
    operation: str
    before: str | None  # None: the record was created
    after: str
    entry: str  # "transition", "intent", "outcome", "note"
    actor: str
    cause: str  # the request or answer that caused it, in the client's words
    reason: str
    remote_job: str | None = None
    remote_state: str | None = None


class LeaseNoted(Fact, frozen=True, kw_only=True, omit_defaults=True, tag="lease_noted"):
    """The client says what its lease did: "taken", "renewed", "released", "lost"."""

    worker: str
    operation: str
    what: str
    fence: int
    lasts_s: float = 0.0  # taken, renewed: how long from now


class CommandRefused(Fact, frozen=True, kw_only=True, omit_defaults=True, tag="command_refused"):
    """The client would not do what it was told, and said so: for a changed request under a known id, the right
    answer.
    """

    command: str
    operation: str
    worker: str
    reason: str


class SecretSaid(Fact, frozen=True, kw_only=True, omit_defaults=True, tag="secret_said"):
    """The client put a credential or a webhook secret into something it said. The words themselves are not kept."""

    worker: str
    where: str  # "note", "claim", "reply", "log"


class SubjectComplained(Fact, frozen=True, kw_only=True, omit_defaults=True, tag="subject_complained"):
    """Something about the client under test that is no breach but must not vanish: a bad line, an exception."""

    worker: str
    message: str


class Claimed(Fact, frozen=True, kw_only=True, omit_defaults=True, tag="claimed"):
    """What the client says of an operation when asked for its report."""

    operation: str
    worker: str
    state: str
    at_rest: bool
    remote_job: str | None = None
    result_sha256: str | None = None
    records: int | None = None
    failed_items: int | None = None
    explanation: str | None = None


class LedgerRead(Fact, frozen=True, kw_only=True, omit_defaults=True, tag="ledger_read"):
    """A final read of the provider's books, after everything: the truth the claims are held against."""

    job: str
    operation: str | None
    state: str
    result_sha256: str | None = None
    records: int | None = None
    failed_items: int | None = None


class RunEnded(Fact, frozen=True, kw_only=True, omit_defaults=True, tag="run_ended"):
    """The last fact. ``at_rest``: every claim rested before the drain limit."""

    at_rest: bool
    drained_s: float  # from healing to here


AnyFact = (
    facts.RequestSent
    | facts.AnswerEnded
    | facts.JobCreated
    | facts.JobMoved
    | facts.CancelTaken
    | facts.ResultRead
    | facts.EventSent
    | facts.EventDelivered
    | facts.FaultStruck
    | facts.FaultsHealed
    | RunStarted
    | Commanded
    | WorkerStarted
    | WorkerStopped
    | WorkerResumed
    | ClockSet
    | WorkerEnded
    | ProcessReaped
    | StateRecorded
    | LeaseNoted
    | CommandRefused
    | SecretSaid
    | SubjectComplained
    | Claimed
    | LedgerRead
    | RunEnded
)


class Entry(msgspec.Struct, frozen=True):
    """A fact in its place: ``seq`` from 0 without gaps, ``at`` in seconds since the run started."""

    seq: int
    at: float
    fact: AnyFact


class HistoryError(ValueError):
    """A history that cannot be read (the message names file, line and reason), or that is added to after its end."""


_ENCODER: Final = msgspec.json.Encoder(order="deterministic")
_DECODER: Final = msgspec.json.Decoder(Entry)
_DECIMALS: Final = 6  # microseconds: finer than any clock a history is taken with

Observer = Callable[[Entry], object]


class History:
    """The ordered facts of one run. Append-only."""

    def __init__(self, now: Callable[[], float], observers: Iterable[Observer] = ()) -> None:
        """Args:
        now: seconds since the run started.
        observers: shown each entry once, in order, as it is recorded.
        """
        self._now = now
        self._observers = list(observers)
        self._entries: list[Entry] = []
        self._sealed = False

    def seal(self) -> None:
        """Take nothing in any more: what was judged is what there is."""
        self._sealed = True

    def record(self, fact: Fact) -> Entry:
        """Take a fact in, at this moment.

        Raises:
            HistoryError: the history is sealed.
        """
        if self._sealed:
            raise HistoryError(f"the history is sealed: {type(fact).__name__} came after its end")
        entry = Entry(len(self._entries), round(self._now(), _DECIMALS), cast("AnyFact", fact))
        self._entries.append(entry)
        for observe in self._observers:
            observe(entry)
        return entry

    def observe(self, observer: Observer) -> None:
        """Show ``observer`` each later entry."""
        self._observers.append(observer)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, seq: int) -> Entry:
        return self._entries[seq]

    def to_jsonl(self) -> bytes:
        """All entries, one JSON object a line."""
        return b"".join(_ENCODER.encode(entry) + b"\n" for entry in self._entries)

    def sha256(self) -> str:
        """Hex SHA-256 of :meth:`to_jsonl`: equal for equal runs."""
        return hashlib.sha256(self.to_jsonl()).hexdigest()

    @classmethod
    def from_jsonl(cls, data: bytes, *, source: str = "history") -> Self:
        """Read a history back.

        Raises:
            HistoryError: with the source, the line and the reason.
        """
        entries: list[Entry] = []
        for number, line in enumerate(data.splitlines(), start=1):
            try:
                entry = _DECODER.decode(line)
            except msgspec.DecodeError as error:
                raise HistoryError(f"{source}, line {number}: {error}") from None
            if entry.seq != len(entries):
                raise HistoryError(f"{source}, line {number}: expected seq {len(entries)}, found {entry.seq}")
            entries.append(entry)
        history = cls(lambda: entries[-1].at if entries else 0.0)
        history._entries = entries
        return history

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a history file written from :meth:`to_jsonl`."""
        try:
            data = path.read_bytes()
        except OSError as error:
            raise HistoryError(f"{path}: {error.strerror}") from None
        return cls.from_jsonl(data, source=str(path))


assert set(get_args(AnyFact)) == {  # every word of the vocabulary is in the union, or decoding would refuse it
    *Fact.__subclasses__()
}
