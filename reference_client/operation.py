"""The durable record of one operation, the entries of its history, and what people and providers may tell it.

Everything here is frozen: a change is a new record, made by the workflow and stored together with the history entries
that explain it. All times are seconds since the Unix epoch by the *store's* clock. No field ever holds a credential
(W8.3).
"""

import hashlib
from enum import StrEnum
from typing import Any, Final

import msgspec

from reference_client.lifecycle import AT_REST, Evidence, LocalState

__all__ = [
    "Call",
    "CollectedResult",
    "Command",
    "Decision",
    "EventNotice",
    "Failure",
    "HistoryEntry",
    "InFlight",
    "Operation",
    "Reconcile",
    "ResultReference",
    "Stop",
    "canonical_json",
    "fingerprint",
    "span_id",
]

_CANONICAL: Final = msgspec.json.Encoder(order="sorted")


def canonical_json(value: Any) -> bytes:
    """Return the one JSON form of ``value`` used for sending and for fingerprints: sorted keys, no spaces, UTF-8."""
    return _CANONICAL.encode(value)


def fingerprint(body: bytes) -> str:
    """Return ``"sha256:<hex>"`` of a request body (W1.2)."""
    return f"sha256:{hashlib.sha256(body).hexdigest()}"


class Call(StrEnum):
    """The kinds of outside call. A re-send of a create is a create."""

    CREATE = "create"
    LOOKUP = "lookup"
    STATUS = "status"
    CANCEL = "cancel"
    RESULT = "result"


class InFlight(msgspec.Struct, frozen=True, kw_only=True):
    """An outside call whose intent is durable and whose outcome is not. Found by another worker, it was interrupted."""

    call: Call
    attempt: int
    since: float
    worker: str
    fence: int


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """The last outside call that came to nothing usable (W3.1)."""

    error: str  # class: "timeout", "reset", "http_503", "unreadable", "interrupted", …
    at: float
    attempt: int


class Stop(msgspec.Struct, frozen=True, kw_only=True, tag_field="command", tag="stop"):
    """Somebody wants the operation stopped (W6.1)."""

    who: str
    why: str
    expected: str = "the job ends early; work that it has already done may remain"


class Reconcile(msgspec.Struct, frozen=True, kw_only=True, tag_field="command", tag="reconcile"):
    """Somebody wants a resting operation looked at again."""

    who: str
    why: str


class Decision(msgspec.Struct, frozen=True, kw_only=True, tag_field="command", tag="decision"):
    """Somebody decides what becomes of an operation in ``human_decision_required``."""

    who: str
    why: str
    state: LocalState
    remote_job_id: str | None = None


class EventNotice(msgspec.Struct, frozen=True, kw_only=True, tag_field="command", tag="event"):
    """A verified webhook event that concerns the operation (W4.7)."""

    event_id: str
    type: str
    remote_job_id: str
    remote_state: str | None = None


Command = Stop | Reconcile | Decision | EventNotice


class ResultReference(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the provider states of a result. None: not stated."""

    path: str | None = None  # at the provider's own origin; None with ``inline``
    content_type: str | None = None
    size_bytes: int | None = None
    sha256: str | None = None  # hex
    records: int | None = None
    failed_items: int | None = None
    inline: bytes | None = None  # canonical bytes of a result that came with the status


class CollectedResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A result that was retrieved: where it lies and what was found in it (W7.3, W7.5)."""

    location: str  # "store" for bytes beside the record, else a file path
    sha256: str
    size_bytes: int
    content_type: str | None
    records: int | None = None
    failed_items: int | None = None
    failed_references: tuple[str, ...] = ()  # the first hundred
    problems: tuple[str, ...] = ()  # empty: valid


class Operation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One logical operation (W1.3). ``None`` and 0 mean: not yet."""

    operation_id: str
    state: LocalState
    # what was asked, and by whom
    adapter: str
    target: str  # the provider's base URL
    request_body: bytes  # as sent, byte for byte
    request_fingerprint: str
    client_reference: str
    idempotency_token: str
    trace_id: str  # 32 hex digits
    authorised_by: str
    started_by: str  # the process that took the submission
    created_at: float
    create_deadline: float
    result_deadline: float
    version: int = 0
    # outside calls
    calls: int = 0
    in_flight: InFlight | None = None
    failure: Failure | None = None
    misses: int = 0  # answers in a row that moved nothing: the exponent of the back-off
    next_attempt_at: float = 0.0  # next create, look-up, poll or result read (W4.3)
    throttled_until: float = 0.0  # a 429 or 503 asked for silence until then
    # creating
    create_attempts: int = 0
    first_sent_at: float | None = None  # when the token was first used
    remote_job_id: str | None = None
    named_in_passing: tuple[str, ...] = ()  # job ids in create answers that broke off
    status_path: str | None = None
    accepted_at: float | None = None
    synchronous: bool = False
    unfamiliar_job_ids: tuple[str, ...] = ()  # W3.4: the other answers
    # observing
    remote_state: str | None = None
    remote_rank: int | None = None
    remote_over: bool = False  # the provider has said that the job is at its end: there is nothing left to cancel
    remote_updated_at: str | None = None
    observed_at: float | None = None
    progress: int | None = None
    answer_sha256: str | None = None
    polls: int = 0
    reconcile_until: float | None = None
    # cancelling
    stop: Stop | None = None
    cancel_deadline: float | None = None
    cancel_calls: int = 0
    cancel_answered: bool = False
    next_cancel_at: float = 0.0
    partial_effects: tuple[str, ...] = ()
    # collecting
    result: ResultReference | None = None
    result_reads: int = 0
    result_rereads: int = 0  # how often the job was read again for a fresh link
    reread_result: bool = False
    collect_deadline: float | None = None
    collected: CollectedResult | None = None
    # for people
    explanation: str | None = None

    @property
    def at_rest(self) -> bool:
        """Nothing more happens until someone acts."""
        return self.state in AT_REST


class HistoryEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of an operation's history (W5.3).

    ``kind`` is "transition" (``before`` differs from ``after``), "intent" (an outside call is about to be made),
    "outcome" (what became of it) or "note"; a transition may be an intent or an outcome as well: see ``begins`` and
    ``ends``. ``facts`` holds short, cleaned details: no payload, no credential.
    """

    operation_id: str
    at: float
    actor: str
    kind: str
    before: LocalState | None
    after: LocalState
    cause: str
    reason: str
    trace_id: str
    evidence: Evidence | None = None
    begins: Call | None = None  # the outside call whose intent this is
    ends: Call | None = None  # the outside call whose outcome this is
    remote_job_id: str | None = None
    remote_state: str | None = None
    facts: dict[str, Any] = {}


def span_id(trace_id: str, call: int) -> str:
    """Return the 16 hex digits that name the ``call``-th outside call of a trace."""
    return hashlib.sha256(f"{trace_id}:{call}".encode()).hexdigest()[:16]
