"""What a client can ask of the provider, and what the provider can say to it, in no dialect at all.

A dialect turns a wire request into a :class:`Call` and a :class:`Reply` into a wire answer; the provider knows only
these.
"""

from enum import StrEnum

import msgspec

from fake_provider.contract import LookupBy
from fake_provider.facts import Endpoint

__all__ = [
    "Call",
    "Cancel",
    "Cancelled",
    "Create",
    "Created",
    "Fetch",
    "Found",
    "JobError",
    "JobView",
    "Listed",
    "Lookup",
    "Problem",
    "Read",
    "Refused",
    "Reply",
    "ResultReference",
    "Served",
]


class Problem(StrEnum):
    """Why the provider refuses. The dialect decides on status and words."""

    INVALID_REQUEST = "invalid_request"
    KEY_MISSING = "idempotency_key_missing"
    KEY_REUSED = "idempotency_key_reused"
    IN_PROGRESS = "request_in_progress"
    UNAUTHORIZED = "unauthorized"
    NOT_FOUND = "not_found"
    NOT_OFFERED = "not_offered"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    TOO_LARGE = "too_large"
    TOO_MANY_JOBS = "too_many_jobs"
    JOB_FINISHED = "job_finished"
    CANCEL_IN_PROGRESS = "cancel_in_progress"
    NOT_FINISHED = "not_finished"
    RESULT_GONE = "result_gone"
    LINK_EXPIRED = "link_expired"
    LINK_INVALID = "link_invalid"


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One request, understood. With a ``refusal`` it was understood well enough to be refused."""

    endpoint: Endpoint = Endpoint.OTHER
    job: str | None = None
    operation: str | None = None  # the marker in the request, if it carries one
    token: str | None = None
    refusal: "Refused | None" = None


class Create(Call, frozen=True, kw_only=True):
    endpoint: Endpoint = Endpoint.CREATE
    scope: str = ""  # whose tokens these are: a digest of the credential
    canonical: bytes = b""  # what the request means; equal for equal requests
    fingerprint: str = ""  # "sha256:…" of the body as sent
    operation_id: str | None = None


class Read(Call, frozen=True, kw_only=True):
    endpoint: Endpoint = Endpoint.STATUS


class Cancel(Call, frozen=True, kw_only=True):
    endpoint: Endpoint = Endpoint.CANCEL


class Fetch(Call, frozen=True, kw_only=True):
    """Read a result. ``expires`` and ``signature`` come with a signed URL."""

    endpoint: Endpoint = Endpoint.RESULT
    expires: int | None = None
    signature: str | None = None


class Lookup(Call, frozen=True, kw_only=True):
    endpoint: Endpoint = Endpoint.LOOKUP
    by: LookupBy = LookupBy.NONE
    value: str = ""


class JobError(msgspec.Struct, frozen=True):
    code: str
    message: str


class ResultReference(msgspec.Struct, frozen=True, kw_only=True):
    """What a finished job says of its result. None where the contract promises no such statement."""

    content_type: str = "application/json"
    size: int | None = None
    sha256: str | None = None
    records: int | None = None
    failed: int | None = None
    inline: bytes | None = None  # the JSON itself
    expires: int | None = None  # signed URL: when it stops working, seconds since the epoch
    signature: str | None = None  # signed URL
    elsewhere: str | None = None  # an origin other than the request's, where a fault has put it


class JobView(msgspec.Struct, frozen=True, kw_only=True):
    """A job as told to a client at one moment. ``state`` is a ``JobState`` unless a fault has put in another word."""

    id: str
    operation: str | None
    state: str
    progress: int | None
    created_at: float
    updated_at: float
    result: ResultReference | None = None
    error: JobError | None = None
    partial_effects: tuple[str, ...] = ()


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What the provider has to say to one call."""


class Created(Reply, frozen=True, kw_only=True):
    view: JobView
    replayed: bool = False


class Found(Reply, frozen=True, kw_only=True):
    view: JobView


class Listed(Reply, frozen=True, kw_only=True):
    views: tuple[JobView, ...]


class Cancelled(Reply, frozen=True, kw_only=True):
    """``confirmed``: the job is at its end; else the provider will see."""

    view: JobView
    confirmed: bool


class Served(Reply, frozen=True, kw_only=True):
    """A result. ``sha256`` is what the provider states, None where the contract promises no checksum."""

    job: str
    operation: str | None
    body: bytes
    content_type: str = "application/json"
    sha256: str | None = None


class Refused(Reply, frozen=True, kw_only=True):
    problem: Problem
    detail: str
    job: str | None = None
