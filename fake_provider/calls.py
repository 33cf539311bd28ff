"""What a client can ask of the provider, and what the provider can say to it, in no dialect at all.

A dialect turns a wire request into a :class:`Call` and a :class:`Reply` into a wire answer; the provider knows only
these.
"""

from enum import StrEnum
from typing import Any, Final

import msgspec

from fake_provider.contract import LookupBy
from fake_provider.facts import Endpoint
from fake_provider.results import Tally

__all__ = [
    "EXPIRED",
    "Browse",
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
    "ReadUpload",
    "Refused",
    "Reply",
    "ResultReference",
    "Served",
    "Upload",
    "Uploaded",
    "UploadedFile",
]


EXPIRED: Final = "expired"
"""The error code of a job that was ended because its time was over."""


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


class Call(msgspec.Struct, frozen=True, gc=False, kw_only=True):
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
    asked: str | None = None  # "sha256:…" of what the job is to do, where the dialect has it in the create
    operation_id: str | None = None
    upload: str | None = None  # the uploaded document that the job is to work through
    memo: Any = None  # what the dialect wants to tell again with the job; nobody else looks at it


class Upload(Call, frozen=True, kw_only=True):
    """Keep a document that later creates refer to."""

    endpoint: Endpoint = Endpoint.UPLOAD
    name: str = ""
    purpose: str = ""
    content: bytes = b""
    items: tuple[str, ...] = ()  # what the client calls the items in it
    complaint: str | None = None  # what is wrong with it: the job that is to work through it fails, and says so


class ReadUpload(Call, frozen=True, kw_only=True):
    """Read an uploaded document, or (``content``) what is in it."""

    upload: str = ""
    content: bool = False


class Read(Call, frozen=True, kw_only=True):
    endpoint: Endpoint = Endpoint.STATUS


class Cancel(Call, frozen=True, kw_only=True):
    endpoint: Endpoint = Endpoint.CANCEL


class Fetch(Call, frozen=True, kw_only=True):
    """Read a result, or (with the endpoint ``annex``) what lies beside it. ``expires`` and ``signature`` come with a
    signed URL.
    """

    endpoint: Endpoint = Endpoint.RESULT
    expires: int | None = None
    signature: str | None = None


class Lookup(Call, frozen=True, kw_only=True):
    endpoint: Endpoint = Endpoint.LOOKUP
    by: LookupBy = LookupBy.NONE
    value: str = ""


class Browse(Call, frozen=True, kw_only=True):
    """List all jobs, the newest first, whoever's they are: a look-up for a client that finds its own among them."""

    endpoint: Endpoint = Endpoint.LOOKUP
    after: str | None = None  # the last job of the page before
    limit: int = 20


class JobError(msgspec.Struct, frozen=True, gc=False):
    code: str
    message: str


class ResultReference(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """What a finished job says of its result. None where the contract promises no such statement."""

    content_type: str = "application/json"
    size: int | None = None
    sha256: str | None = None
    records: int | None = None
    failed: int | None = None
    inline: bytes | None = None  # the JSON itself
    length: int = 0  # of the result in bytes, for formats that tell it elsewhere than in the status
    annex_size: int | None = None  # bytes of what lies beside it; None: nothing does
    expires: int | None = None  # signed URL: when it stops working, seconds since the epoch
    signature: str | None = None  # signed URL
    elsewhere: str | None = None  # an origin other than the request's, where a fault has put it


class JobView(msgspec.Struct, frozen=True, gc=False, kw_only=True):
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
    started_at: float | None = None  # None: it did not start yet
    expires_at: float | None = None  # when it is ended if it is unfinished; None: never
    counts: Tally | None = None  # of its items; None where the contract promises no counts
    upload: str | None = None
    memo: Any = None


class UploadedFile(msgspec.Struct, frozen=True, kw_only=True):
    """An uploaded document in the provider's keeping."""

    id: str
    name: str
    purpose: str
    content: bytes
    created_at: float
    items: tuple[str, ...] = ()
    complaint: str | None = None


class Reply(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """What the provider has to say to one call."""


class Created(Reply, frozen=True, kw_only=True):
    view: JobView
    replayed: bool = False


class Found(Reply, frozen=True, kw_only=True):
    view: JobView


class Listed(Reply, frozen=True, kw_only=True):
    views: tuple[JobView, ...]
    more: bool = False  # there is another page


class Uploaded(Reply, frozen=True, kw_only=True):
    """``content``: the document itself was asked for."""

    file: UploadedFile
    content: bool = False


class Cancelled(Reply, frozen=True, kw_only=True):
    """``confirmed``: the job is at its end; else the provider will see."""

    view: JobView
    confirmed: bool


class Served(Reply, frozen=True, kw_only=True):
    """A result. ``sha256`` is what the provider states, None where the contract promises no checksum."""

    job: str
    operation: str | None
    body: bytes
    annex: bool = False
    content_type: str = "application/json"
    sha256: str | None = None


class Refused(Reply, frozen=True, kw_only=True):
    problem: Problem
    detail: str
    job: str | None = None
