"""OpenAPI documents, made from the same tables the calls are served from."""

import re
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any, Final

import msgspec
from pydantic import TypeAdapter

__all__ = ["PROBLEM", "Described", "document", "problem_answer"]

PROBLEM: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
    },
}
"""RFC 9457."""

_PARAMETER: Final = re.compile(r"\{([a-z_]+)\}")


class Described(msgspec.Struct, frozen=True, kw_only=True):
    """One call as it is told to others."""

    method: str
    path: str
    summary: str
    body: TypeAdapter[Any] | None = None
    body_required: bool = False
    query: TypeAdapter[Any] | None = None
    success: HTTPStatus = HTTPStatus.OK
    content_type: str = "application/json"
    failures: tuple[HTTPStatus, ...] = ()


def problem_answer(status: HTTPStatus) -> dict[str, Any]:
    """Return how an answer is described that says what is wrong."""
    return {
        "description": status.phrase,
        "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }


def _schema(adapter: TypeAdapter[Any], shared: dict[str, Any]) -> dict[str, Any]:
    """Return a model's schema, its parts moved to where the document keeps them."""
    schema = adapter.json_schema(ref_template="#/components/schemas/{model}", mode="validation")
    shared.update(schema.pop("$defs", {}))
    return schema


def _failures(call: Described) -> Iterable[HTTPStatus]:
    yield from call.failures
    if "{session}" in call.path:
        yield HTTPStatus.NOT_FOUND
    if call.body is not None or call.query is not None:
        yield HTTPStatus.UNPROCESSABLE_ENTITY
    if call.body is not None:
        yield HTTPStatus.REQUEST_ENTITY_TOO_LARGE


def _operation(call: Described, shared: dict[str, Any]) -> dict[str, Any]:
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in _PARAMETER.findall(call.path)
    ]
    if call.query is not None:
        query = _schema(call.query, shared)
        parameters.extend(
            {"name": name, "in": "query", "required": name in query.get("required", ()), "schema": schema}
            for name, schema in query["properties"].items()
        )
    good: dict[str, Any] = {"description": call.success.phrase}
    if call.success is not HTTPStatus.NO_CONTENT:
        good["content"] = {call.content_type: {"schema": {} if call.content_type != "application/json" else _ANY}}
    told: dict[str, Any] = {
        "summary": call.summary,
        "parameters": parameters,
        "responses": {
            str(call.success.value): good,
            **{str(status.value): problem_answer(status) for status in _failures(call)},
        },
    }
    if call.body is not None:
        schema = _schema(call.body, shared)
        told["requestBody"] = {"required": call.body_required, "content": {"application/json": {"schema": schema}}}
    return told


_ANY: Final = {"type": "object"}


def document(title: str, url: str, calls: Iterable[Described]) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of these calls, served at ``url``."""
    shared: dict[str, Any] = {"Problem": PROBLEM}
    paths: dict[str, dict[str, Any]] = {}
    for call in calls:
        paths.setdefault(call.path, {})[call.method.lower()] = _operation(call, shared)
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": "1"},
        "servers": [{"url": url}],
        "paths": paths,
        "components": {"schemas": shared},
    }
