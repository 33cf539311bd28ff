"""The objects of the ``jobs`` wire format as they are written: a job with its result or error, a record, a problem."""

from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

import msgspec

from fake_provider.calls import JobView, ResultReference
from fake_provider.contract import Contract
from fake_provider.results import Row

__all__ = ["JOBS", "iso", "job_object", "job_url", "problem_object", "record_object"]

JOBS: Final = "/v1/jobs"
"""The path of all jobs; each is under it."""


class _Result(msgspec.Struct, kw_only=True):
    """``result`` of a job as written. Absent where the contract promises no such statement."""

    href: str | msgspec.UnsetType = msgspec.UNSET
    content_type: str
    size: int | msgspec.UnsetType = msgspec.UNSET
    sha256: str | msgspec.UnsetType = msgspec.UNSET
    records: int | msgspec.UnsetType = msgspec.UNSET
    failed: int | msgspec.UnsetType = msgspec.UNSET
    inline: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class _Error(msgspec.Struct):
    code: str
    message: str


class _Job(msgspec.Struct, kw_only=True):
    """A job as written."""

    id: str
    status: str
    progress: int | None
    client_reference: str | None
    created_at: str
    updated_at: str
    result: _Result | None = None
    error: _Error | None = None
    partial_effects: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET


def job_url(base_url: str, job: str) -> str:
    """Return the URL of a job."""
    return f"{base_url}{JOBS}/{job}"


@lru_cache(maxsize=1024)
def iso(at: float) -> str:
    """Return a time as ISO 8601 in UTC, to the millisecond."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def job_object(view: JobView, contract: Contract, base_url: str) -> msgspec.Struct:
    """Return a job as it is told of, to be encoded as JSON. URLs in it are under ``base_url``, times as :func:`iso`."""
    return _Job(
        id=view.id,
        status=contract.status.words.tell(view.state),
        progress=view.progress,
        client_reference=view.operation,
        created_at=iso(view.created_at),
        updated_at=iso(view.updated_at),
        result=_written_result(view.id, view.result, base_url) if view.result is not None else None,
        error=_Error(view.error.code, view.error.message) if view.error is not None else None,
        partial_effects=view.partial_effects or msgspec.UNSET,
    )


def _written_result(job: str, result: ResultReference, base_url: str) -> _Result:
    query = f"?expires={result.expires}&signature={result.signature}" if result.signature is not None else ""
    return _Result(
        href=msgspec.UNSET if result.inline is not None else f"{job_url(base_url, job)}/result{query}",
        content_type=result.content_type,
        size=_told(result.size),
        sha256=_told(result.sha256),
        records=_told(result.records),
        failed=_told(result.failed),
        inline=msgspec.Raw(result.inline) if result.inline is not None else msgspec.UNSET,
    )


def record_object(row: Row) -> dict[str, str]:
    """Return one row of a result; one without an id is not about any item, and holds an error only."""
    if row.id is None:
        return {"error": row.error or ""}
    return (
        {"id": row.id, "status": "ok"} if row.error is None else {"id": row.id, "status": "failed", "error": row.error}
    )


def _told(value: Any) -> Any:
    return msgspec.UNSET if value is None else value


def problem_object(status: int, slug: str, detail: str) -> dict[str, Any]:
    """Return problem details (RFC 9457). ``slug`` is the problem's name, with underscores."""
    kind = f"https://jobsworth.test/problems/{slug.replace('_', '-')}"
    title = slug.replace("_", " ").capitalize()
    return {"type": kind, "title": title, "status": status, "detail": detail}
