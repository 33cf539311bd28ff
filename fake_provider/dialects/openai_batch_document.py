"""The ``openai-batch`` wire format as an OpenAPI document, faults aside, and the names it shares with the dialect."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from fake_provider.calls import EXPIRED
from fake_provider.contract import Contract
from fake_provider.lifecycle import JobState

__all__ = ["BATCHES", "FILES", "FINALIZING", "LONGEST_PAGE", "MOST_METADATA", "WORDS", "describe_batches"]

FILES: Final = "/v1/files"
BATCHES: Final = "/v1/batches"
MOST_METADATA: Final = 16
LONGEST_PAGE: Final = 100
FINALIZING: Final = "finalizing"
WORDS: Final[Mapping[str, str]] = {
    JobState.QUEUED: "validating",
    JobState.RUNNING: "in_progress",
    JobState.CANCELLING: "cancelling",
    JobState.SUCCEEDED: "completed",
    JobState.FAILED: "failed",
    JobState.CANCELLED: "cancelled",
}

_TEXT: Final = {"type": "string"}
_MAYBE_TEXT: Final = {"type": ["string", "null"]}
_NUMBER: Final = {"type": "integer"}
_MAYBE_NUMBER: Final = {"type": ["integer", "null"]}
_COUNTS: Final = dict.fromkeys(("total", "completed", "failed"), _NUMBER)
_SCHEMAS: Final[dict[str, Any]] = {
    "Error": {"type": "object", "required": ["error"], "properties": {"error": {"type": "object"}}},
    "File": {
        "type": "object",
        "required": ["id", "object", "bytes", "created_at", "filename", "purpose", "status"],
        "properties": {"id": _TEXT, "bytes": _NUMBER, "created_at": _NUMBER, "filename": _TEXT, "purpose": _TEXT},
    },
    "Batch": {
        "type": "object",
        "required": ["id", "object", "endpoint", "input_file_id", "completion_window", "status", "created_at"],
        "properties": {
            "id": _TEXT,
            "status": {"enum": [*WORDS.values(), FINALIZING, EXPIRED]},
            "output_file_id": _MAYBE_TEXT,
            "error_file_id": _MAYBE_TEXT,
            "completed_at": _MAYBE_NUMBER,
            "request_counts": {"type": "object", "required": list(_COUNTS), "properties": _COUNTS},
            "metadata": {"type": ["object", "null"], "additionalProperties": _TEXT},
        },
    },
    "Batches": {
        "type": "object",
        "required": ["object", "data", "has_more"],
        "properties": {"data": {"type": "array", "items": {"$ref": "#/components/schemas/Batch"}}},
    },
    "NewBatch": {
        "type": "object",
        "required": ["input_file_id", "endpoint", "completion_window"],
        "properties": {
            "input_file_id": _TEXT,
            "endpoint": {"type": "string", "pattern": "^/v1/"},
            "completion_window": {"const": "24h"},
            "metadata": {"type": ["object", "null"], "additionalProperties": _TEXT, "maxProperties": MOST_METADATA},
        },
    },
}


def _described(summary: str, schema: str | None, bad: Sequence[int], **more: Any) -> dict[str, Any]:
    kind = "application/json" if schema is not None else "application/octet-stream"
    good = {"$ref": f"#/components/schemas/{schema}"} if schema is not None else {}
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    answers: dict[str, Any] = {"200": {"description": "OK", "content": {kind: {"schema": good}}}}
    answers |= {str(status): {"description": "An error", "content": error} for status in (401, *bad)}
    return {"summary": summary, "responses": answers, **more}


def _in_path(name: str) -> list[dict[str, Any]]:
    return [{"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}]


_PAGE: Final = [
    {"name": "after", "in": "query", "schema": {"type": "string", "minLength": 1}},
    {"name": "limit", "in": "query", "schema": {"type": "integer", "minimum": 1, "maximum": LONGEST_PAGE}},
]
_FORM: Final = {
    "type": "object",
    "required": ["file", "purpose"],
    "properties": {"file": {"type": "string", "contentMediaType": "application/octet-stream"}, "purpose": _TEXT},
}
_NEW: Final = {
    "required": True,
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/NewBatch"}}},
}
_UPLOAD: Final = {"required": True, "content": {"multipart/form-data": {"schema": _FORM}}}
_PATHS: Final[dict[str, Any]] = {
    FILES: {"post": _described("Upload a file.", "File", (400, 413), requestBody=_UPLOAD)},
    f"{FILES}/{{file}}": {"get": _described("Read of a file.", "File", (404,), parameters=_in_path("file"))},
    f"{FILES}/{{file}}/content": {"get": _described("Read a file.", None, (404,), parameters=_in_path("file"))},
    BATCHES: {
        "post": _described("Create a batch.", "Batch", (400, 409, 413, 429), requestBody=_NEW),
        "get": _described("List batches.", "Batches", (400, 404), parameters=_PAGE),
    },
    f"{BATCHES}/{{batch}}": {"get": _described("Read a batch.", "Batch", (404,), parameters=_in_path("batch"))},
    f"{BATCHES}/{{batch}}/cancel": {
        "post": _described("Cancel a batch.", "Batch", (404, 405, 409), parameters=_in_path("batch"))
    },
}


def describe_batches(contract: Contract, base_url: str) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of a provider with this contract."""
    return {
        "openapi": "3.1.0",
        "info": {"title": f"A fake Batch API, contract {contract.name}", "version": "1"},
        "servers": [{"url": base_url}],
        "security": [{"bearer": []}],
        "paths": _PATHS,
        "components": {
            "schemas": _SCHEMAS,
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }
