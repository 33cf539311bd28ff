"""The objects of the ``openai-batch`` wire format as they are written: batch, file, error, a line of a result file."""

import hashlib
import re
from typing import Any, Final

from fake_provider.calls import EXPIRED, JobView
from fake_provider.dialects.openai_batch_document import FINALIZING, WORDS
from fake_provider.lifecycle import JobState
from fake_provider.results import Row, canonical_json

__all__ = [
    "WINDOW_S",
    "batch_object",
    "error_object",
    "file_object",
    "result_file_id",
    "result_file_named",
    "result_line",
    "status_of",
]

WINDOW_S: Final = 86_400
"""How long a batch may take: the one completion window that there is."""

_FINALIZING: Final = 90  # per cent: from here on the files are being written
_RESULT_FILE: Final = re.compile(r"file-(result|errors)-([0-9a-f]{16})")


def result_line(row: Row) -> bytes:
    """Return one row of a result as its line of a file, with the line's end; JSON."""
    if row.id is None:
        return canonical_json({"error": {"message": row.error}}) + b"\n"
    number = hashlib.sha256(row.id.encode()).hexdigest()[:16]
    body: dict[str, Any]
    if row.error is None:
        status, body = 200, {"id": f"resp_{number}", "object": "response", "custom_id": row.id}
    else:
        status, body = 400, {"error": error_object(row.error, "item_failed", 400)}
    response = {"status_code": status, "request_id": f"req_{number}", "body": body}
    written = {"id": f"batch_req_{number}", "custom_id": row.id, "response": response, "error": None}
    return canonical_json(written) + b"\n"


def status_of(view: JobView) -> str:
    """Return the state of a job in the words of a batch."""
    if view.state == JobState.RUNNING and (view.progress or 0) >= _FINALIZING:
        return FINALIZING
    if view.state == JobState.FAILED and view.error is not None and view.error.code == EXPIRED:
        return EXPIRED
    return WORDS.get(view.state, view.state)


def batch_object(view: JobView) -> dict[str, Any]:
    """Return a job as a batch. Its times are whole seconds since the epoch."""
    status = status_of(view)
    memo = view.memo or {}
    result, counts = view.result, view.counts
    all_failed = result is not None and bool(result.records) and result.failed == result.records
    main = result_file_id(view, annex=False) if result is not None else None
    annex = result_file_id(view, annex=True) if result is not None and result.annex_size is not None else None
    ended = int(view.updated_at)
    error = None
    if view.error is not None and status != EXPIRED:
        data = [{"code": view.error.code, "line": None, "message": view.error.message, "param": None}]
        error = {"object": "list", "data": data}
    return {
        "id": view.id,
        "object": "batch",
        "endpoint": memo.get("endpoint") or "",
        "errors": error,
        "input_file_id": view.upload or "",
        "completion_window": memo.get("completion_window") or "24h",
        "status": status,
        "output_file_id": None if all_failed else main,
        "error_file_id": main if all_failed else annex,
        "created_at": int(view.created_at),
        "in_progress_at": int(view.started_at) if view.started_at is not None else None,
        "expires_at": int(view.expires_at or view.created_at + WINDOW_S),
        "finalizing_at": ended if status == "completed" else None,
        "completed_at": ended if status == "completed" else None,
        "failed_at": ended if status == "failed" else None,
        "expired_at": ended if status == EXPIRED else None,
        "cancelling_at": ended if status in {"cancelling", "cancelled"} else None,
        "cancelled_at": ended if status == "cancelled" else None,
        "request_counts": {
            "total": counts.total if counts is not None else 0,
            "completed": counts.succeeded if counts is not None else 0,
            "failed": counts.failed if counts is not None else 0,
        },
        "metadata": memo.get("metadata"),
    }


def result_file_id(view: JobView, *, annex: bool) -> str:
    """Return the id of a job's result file, or of the error file that lies beside it."""
    return f"file-{'errors' if annex else 'result'}-{view.id.removeprefix('batch_')}"


def result_file_named(name: str) -> tuple[str, bool] | None:
    """Return whose result file has that id, and whether it is the one beside the result; None if it is no such id."""
    found = _RESULT_FILE.fullmatch(name)
    return (f"batch_{found[2]}", found[1] == "errors") if found is not None else None


def file_object(name: str, filename: str, purpose: str, size: int, created_at: float) -> dict[str, Any]:
    """Return a file as it is told of: ``name`` is its id, ``size`` in bytes, its time in seconds since the epoch."""
    return {
        "id": name,
        "object": "file",
        "bytes": size,
        "created_at": int(created_at),
        "filename": filename,
        "purpose": purpose,
        "status": "processed",
    }


def error_object(message: str, code: str, status: int) -> dict[str, Any]:
    """Return what is wrong, as it stands under ``error``; ``status`` is the answer's."""
    kind = "server_error" if status >= 500 else "invalid_request_error"
    return {"message": message, "type": kind, "param": None, "code": code}
