"""What an adapter is: operation in, request out; answer in, meaning out. And the words for both.

An adapter knows one provider's wire format and decides nothing. It is pure: no time, no randomness, no I/O, and its
readers raise nothing, whatever bytes they are given: what cannot be read is :class:`Unusable` (or :class:`Ambiguous`,
for a create).
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Protocol
from urllib.parse import urljoin, urlsplit

import msgspec

from reference_client.operation import Operation, ResultReference

__all__ = [
    "Absent",
    "Accepted",
    "Ambiguous",
    "Answer",
    "CancelMeaning",
    "CancelRefused",
    "CancelTaken",
    "Completed",
    "Conflict",
    "CreateMeaning",
    "Event",
    "Found",
    "Gone",
    "JobReport",
    "LookupMeaning",
    "Missing",
    "Moved",
    "NoAnswer",
    "NotYet",
    "Phase",
    "ProviderAdapter",
    "Rejected",
    "Request",
    "RequestError",
    "ResultMeaning",
    "Retrieved",
    "StatusMeaning",
    "Unusable",
    "path_at_origin",
]


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One request to the provider. ``path``, with its query, is taken at the origin that the worker was given.

    It carries neither credential nor trace: the transport attaches both.
    """

    method: str
    path: str
    headers: Mapping[str, str] = {}
    body: bytes | None = None


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """One whole answer. Header names are lower case. ``url`` is what was asked: addresses in the answer start from
    it.
    """

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    received_at: float


class NoAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """No whole answer came. ``sent`` is False only when no byte of the request can have reached the provider."""

    error: str  # class: "timeout", "reset", "cut", "connect_failed", …
    detail: str
    received_at: float
    sent: bool = True
    url: str = ""  # as in Answer
    status: int | None = None  # of an answer that broke off in its body
    headers: Mapping[str, str] = {}


class Phase(StrEnum):
    """What a remote state means to a workflow. An unknown word is ``UNKNOWN``, which steers nothing (W4.5)."""

    ACTIVE = "active"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"

    @property
    def is_end(self) -> bool:
        """Whether a job in such a state does nothing more."""
        return self in {Phase.SUCCEEDED, Phase.FAILED, Phase.CANCELLED}


class JobReport(msgspec.Struct, frozen=True, kw_only=True):
    """What the provider says of a job, in one answer."""

    job_id: str
    state: str  # the provider's own word
    phase: Phase
    rank: int | None = None  # how far along a job in this state is; a lower one after a higher one is a step back
    client_reference: str | None = None
    progress: int | None = None
    updated_at: str | None = None
    result: ResultReference | None = None
    error: str | None = None
    partial_effects: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()  # what was passed over, and why


class Accepted(msgspec.Struct, frozen=True):
    """The create made a job, or had made it before."""

    job: JobReport
    status_path: str | None = None
    replayed: bool = False


class Completed(msgspec.Struct, frozen=True):
    """The create was answered with the finished work itself (W1.6)."""

    job: JobReport
    replayed: bool = False


class Rejected(msgspec.Struct, frozen=True):
    """The create was refused for certain.

    ``judges_request``: the refusal is about the request itself, so an identical one sent before was refused as well.
    A refusal about anything else (a credential, a path) says nothing of an earlier, unanswered create.
    """

    error: str
    detail: str
    judges_request: bool


class Ambiguous(msgspec.Struct, frozen=True):
    """The answer does not say whether there is a job."""

    error: str
    detail: str


class Conflict(msgspec.Struct, frozen=True):
    """The provider says the token belongs to another request: one of the two sides broke the contract."""

    error: str
    detail: str


class Found(msgspec.Struct, frozen=True):
    """A look-up named at least one job."""

    jobs: tuple[JobReport, ...]


class Absent(msgspec.Struct, frozen=True):
    """A look-up named no job."""


class Missing(msgspec.Struct, frozen=True):
    """The provider says it knows no such job."""

    detail: str


class Moved(msgspec.Struct, frozen=True):
    """A redirect. ``path`` is at the same origin, or None when it leads elsewhere."""

    path: str | None
    detail: str


class Unusable(msgspec.Struct, frozen=True):
    """The answer tells nothing about the job: a failed read is not a failed job (W4.5)."""

    error: str
    detail: str


class CancelTaken(msgspec.Struct, frozen=True):
    """The provider took the cancel call. What it did about it, a status read will tell."""

    detail: str
    partial_effects: tuple[str, ...] = ()


class CancelRefused(msgspec.Struct, frozen=True):
    """The provider will not cancel: "finished", "unsupported", "not_found", "refused"."""

    error: str
    detail: str


class Retrieved(msgspec.Struct, frozen=True):
    """A result body, not yet validated."""

    body: bytes
    content_type: str | None
    sha256: str | None = None  # hex, from a digest in the answer


class NotYet(msgspec.Struct, frozen=True):
    """There is no result so far."""

    detail: str


class Gone(msgspec.Struct, frozen=True):
    """The result cannot be had at this address any more."""

    detail: str


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """What a webhook body says. The event's id comes from its headers."""

    type: str
    job: JobReport


CreateMeaning = Accepted | Completed | Rejected | Ambiguous | Conflict
LookupMeaning = Found | Absent | Unusable
StatusMeaning = JobReport | Missing | Moved | Unusable
CancelMeaning = CancelTaken | CancelRefused | Unusable
ResultMeaning = Retrieved | NotYet | Gone | Moved | Unusable


class RequestError(ValueError):
    """A request that this provider's adapter cannot send. The message says why."""


class ProviderAdapter(Protocol):
    """One provider, as a workflow sees it. ``Operation.adapter`` holds its ``name``."""

    @property
    def name(self) -> str: ...

    def prepare(self, operation_id: str, request: Mapping[str, Any]) -> tuple[bytes, str]:
        """Return the canonical body for a submitted request, and the client reference in it.

        Raises:
            RequestError: if the provider could never take it.
        """
        ...

    def body_with_token(self, body: bytes, token: str) -> bytes:
        """Return the body as it will be sent, every time: with the token in it if that is where the contract puts it
        (W2.1).
        """
        ...

    def create(self, operation: Operation) -> Request: ...

    def lookup(self, operation: Operation) -> Request: ...

    def status(self, operation: Operation) -> Request: ...

    def cancel(self, operation: Operation) -> Request: ...

    def result(self, operation: Operation) -> Request: ...

    def read_create(self, answer: Answer) -> CreateMeaning: ...

    def job_named_in_passing(self, answer: NoAnswer) -> str | None:
        """Return the job id in the headers of a create answer that broke off: no proof, but not to be forgotten
        (W3.4).
        """
        ...

    def read_lookup(self, answer: Answer) -> LookupMeaning: ...

    def read_status(self, answer: Answer) -> StatusMeaning: ...

    def read_cancel(self, answer: Answer) -> CancelMeaning: ...

    def read_result(self, answer: Answer) -> ResultMeaning: ...

    def validate_result(self, operation: Operation, body: bytes) -> tuple[int | None, tuple[str, ...], tuple[str, ...]]:
        """Return the number of records in a result, the references of those that failed, and what is wrong with it
        (W7.2).
        """
        ...

    def read_event(self, body: bytes) -> Event | None:
        """Return what a verified webhook body says, or None if it is not about a job."""
        ...


def path_at_origin(asked: str, url: str) -> str | None:
    """Return path and query of ``url``, resolved against the URL that was asked, or None at another origin (W8.3).

    Only the path is ever kept: whoever uses it adds the origin that he himself was given.
    """
    try:
        theirs, ours = urlsplit(urljoin(asked, url)), urlsplit(asked)
        same = (theirs.scheme, theirs.hostname, _port(theirs.scheme, theirs.port)) == (
            ours.scheme,
            ours.hostname,
            _port(ours.scheme, ours.port),
        )
    except ValueError:
        return None
    if not same or not theirs.hostname or theirs.username is not None or theirs.password is not None:
        return None
    return (theirs.path or "/") + (f"?{theirs.query}" if theirs.query else "")


def _port(scheme: str, port: int | None) -> int | None:
    return port if port is not None else {"http": 80, "https": 443}.get(scheme)
