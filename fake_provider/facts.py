"""The vocabulary of what happened, as seen by the provider and the network in front of it.

A fact is one immutable record. It carries neither its time nor its place in the order: a history gives it both
when it takes it in (``harness.history.Entry``). Facts hold digests and names, never a credential or a payload.

The provider side speaks of *exchanges* (one request and what became of its answer), *jobs* and *events* (webhooks).
What the client under test says of itself is in ``harness.history``.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final

import msgspec

__all__ = [
    "AnswerEnded",
    "CancelTaken",
    "CommitPoint",
    "Endpoint",
    "EventDelivered",
    "EventSent",
    "Fact",
    "Fate",
    "FaultStruck",
    "FaultsHealed",
    "JobCreated",
    "JobMoved",
    "ProviderFact",
    "Record",
    "RequestSent",
    "ResultRead",
    "asked_digest",
    "credential_digest",
    "digest",
]


def digest(data: bytes) -> str:
    """Return what a fact holds instead of the bytes themselves: ``sha256:…``, in hex."""
    return f"sha256:{sha256(data).hexdigest()}"


@lru_cache(maxsize=256)
def credential_digest(authorization: str) -> str:
    """Return what a fact holds of an Authorization header: enough to tell two apart."""
    return digest(authorization.encode())[: len("sha256:") + 16]


def asked_digest(request: Mapping[str, Any]) -> str | None:
    """Return what a fact holds of what a job is to do (the fields ``kind`` and ``parameters``): equal for what means
    the same, however it is written. None where it is nested too deeply to be compared.
    """
    try:
        meant = _by_value([request.get("kind"), request.get("parameters") or {}])
    except RecursionError:
        return None
    return digest(_MEANT.encode(meant))[: len("sha256:") + 16]


_MEANT: Final = msgspec.json.Encoder(order="sorted")


def _by_value(value: Any) -> Any:
    """The same JSON value with whole numbers written as such: some languages know no other way, some another."""
    if isinstance(value, dict):
        return {name: _by_value(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_by_value(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


class Endpoint(StrEnum):
    """What an exchange is for. ``upload`` brings a document that creates refer to, ``annex`` reads what lies beside a
    result. ``webhook`` runs from provider to client; ``store`` is a client's durable write.
    """

    CREATE = "create"
    STATUS = "status"
    CANCEL = "cancel"
    RESULT = "result"
    LOOKUP = "lookup"
    UPLOAD = "upload"
    ANNEX = "annex"
    WEBHOOK = "webhook"
    STORE = "store"
    OTHER = "other"


class CommitPoint(StrEnum):
    """Where in an exchange a fault may strike, in the order in which an exchange passes them.

    For ``store``: ``received`` is before the write, ``committed`` is after it is durable and before the client goes on.
    """

    BEFORE_RECEIPT = "before_receipt"
    RECEIVED = "received"
    COMMITTED = "committed"
    ANSWERING = "answering"
    DELIVERED = "delivered"


class Fate(StrEnum):
    """What became of an answer, as the client could tell."""

    DELIVERED = "delivered"
    LOST = "lost"  # nothing came back; the client waits until its own time-out
    CUT = "cut"  # headers and a part of the body, then the end
    RESET = "reset"  # the connection was reset
    ABANDONED = "abandoned"  # the client went away before the answer was there


class Fact(msgspec.Struct, frozen=True, gc=False, tag_field="fact", kw_only=True, omit_defaults=True):
    """One thing that happened. Subclasses are the vocabulary."""


class RequestSent(Fact, frozen=True, tag="request_sent"):
    """A request left a client. It may never be received: see ``AnswerEnded`` and ``FaultStruck`` of its exchange."""

    exchange: int
    worker: str
    endpoint: Endpoint
    method: str
    path: str
    operation: str | None = None  # the marker in the request, or the operation of the job it names
    job: str | None = None  # the job id the request names
    token: str | None = None  # the idempotency token
    fingerprint: str | None = None  # "sha256:…" of the body as sent
    trace: str | None = None  # the trace id of a valid W3C traceparent
    credential: str | None = None  # "sha256:…" of the Authorization header, first 16 hex digits
    origin: str | None = None  # where it went, if not to the provider: the credential is not for there
    copy_of: int | None = None  # the network delivered this exchange's request once more
    asked: str | None = None  # create: "sha256:…" of what the job is to do, first 16 hex digits; see asked_digest
    exposed: tuple[str, ...] = ()  # where a secret stood, other than in Authorization: "query", "header baggage" …


class AnswerEnded(Fact, frozen=True, tag="answer_ended"):
    """The end of an exchange: what the provider answered and what became of the answer."""

    exchange: int
    worker: str
    endpoint: Endpoint
    fate: Fate
    status: int | None = None  # HTTP status; None when no answer was made
    operation: str | None = None
    job: str | None = None  # the job id in the answer
    jobs: tuple[str, ...] = ()  # a look-up that found several: all of them
    remote_state: str | None = None  # the state in the answer, in the dialect's words
    canonical_state: str | None = None  # the same as a JobState, None when the words mean no state
    progress: int | None = None  # per cent
    retry_after_s: float | None = None  # what a valid Retry-After asks for, from the moment of answering
    retry_after_is_date: bool = False  # written so, that it falls due by the client's clock
    replayed: bool = False  # an earlier answer for the same token
    problem: str | None = None  # short name of the problem, for error answers
    request_id: str | None = None
    from_fault: bool = False  # made by a fault, not by the provider
    leaving_s: float = 0.0  # for so long it was on its way out of the provider; nothing but real time makes it long


class JobCreated(Fact, frozen=True, tag="job_created"):
    """The provider took a create as a new job: this is what a duplicate costs."""

    job: str
    operation: str | None
    exchange: int
    token: str | None = None
    fingerprint: str | None = None
    synchronous: bool = False


class JobMoved(Fact, frozen=True, tag="job_moved"):
    """A job changed its state at the provider. This, and no answer, is the truth about a job."""

    job: str
    operation: str | None
    before: str
    after: str
    cause: str  # "schedule", "cancel", "expiry", "control", or a fault kind
    records: int | None = None  # on success: items in the result
    failed_items: int | None = None  # on success: of those, items that failed
    result_sha256: str | None = None  # hex, of the result body as the provider would send it unharmed


class CancelTaken(Fact, frozen=True, tag="cancel_taken"):
    """The provider received a cancel call. ``effect``: what it will do about it."""

    job: str
    operation: str | None
    exchange: int
    effect: str  # "cancelled", "cancelling", "ignored", "already_terminal"


class ResultRead(Fact, frozen=True, tag="result_read"):
    """The provider served a result. ``sha256`` is of the body served, which a fault may have harmed."""

    job: str
    operation: str | None
    exchange: int
    sha256: str
    size_bytes: int
    time: int  # how many times this result was read, this one included


class EventSent(Fact, frozen=True, tag="event_sent"):
    """One attempt to deliver a webhook event left for the client."""

    delivery: int
    event: str  # webhook-id: the same over retries
    type: str
    job: str
    operation: str | None
    attempt: int
    genuine: bool = True  # False: signed with a secret the client never got
    worker: str | None = None
    skew_s: int = 0  # by how much its timestamp is ahead of the clock; negative: behind


class EventDelivered(Fact, frozen=True, tag="event_delivered"):
    """What came of one attempt: the receiver's HTTP status, or None if there was no answer."""

    delivery: int
    event: str
    worker: str | None = None
    status: int | None = None


class FaultStruck(Fact, frozen=True, tag="fault_struck"):
    """A planned fault took effect."""

    fault: int  # its index in the plan
    kind: str
    address: str  # where it was planned
    endpoint: Endpoint
    point: CommitPoint
    exchange: int | None = None
    worker: str | None = None
    operation: str | None = None


class FaultsHealed(Fact, frozen=True, tag="faults_healed"):
    """All faults were disarmed: from here on the world behaves."""

    struck: int
    planned: int


ProviderFact = (
    RequestSent
    | AnswerEnded
    | JobCreated
    | JobMoved
    | CancelTaken
    | ResultRead
    | EventSent
    | EventDelivered
    | FaultStruck
    | FaultsHealed
)
"""The whole vocabulary of this side."""

Record = Callable[[ProviderFact], object]
"""Takes each fact as it happens."""
