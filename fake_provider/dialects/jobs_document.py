"""The ``jobs`` wire format as an OpenAPI document: what each call takes and every answer it may get, faults aside."""

from http import HTTPStatus
from typing import Any, Final

from fake_provider.contract import CancelEffect, CancelMethod, Contract, CreateAnswer, LookupBy, Mechanism, ResultKind
from fake_provider.openapi import PROBLEM, problem_answer

__all__ = ["describe_jobs"]

_TEXT: Final = {"type": "string"}
_NUMBER: Final = {"type": "integer"}

_RESULT: Final = {
    "type": ["object", "null"],
    "required": ["content_type"],
    "properties": {
        "href": _TEXT,
        "content_type": _TEXT,
        "size": _NUMBER,
        "sha256": _TEXT,
        "records": _NUMBER,
        "failed": _NUMBER,
        "inline": {"$ref": "#/components/schemas/Report"},
    },
}
_JOB: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["id", "status", "progress", "client_reference", "created_at", "updated_at", "result", "error"],
    "properties": {
        "id": _TEXT,
        "status": {"type": "string"},
        "progress": {"type": ["integer", "null"], "minimum": 0, "maximum": 100},
        "client_reference": {"type": ["string", "null"]},
        "created_at": {"type": "string", "format": "date-time"},
        "updated_at": {"type": "string", "format": "date-time"},
        "result": _RESULT,
        "error": {
            "type": ["object", "null"],
            "required": ["code", "message"],
            "properties": {"code": _TEXT, "message": _TEXT},
        },
        "partial_effects": {"type": "array", "items": _TEXT},
    },
}
_REPORT: Final = {
    "type": "object",
    "required": ["client_reference", "records"],
    "properties": {
        "client_reference": {"type": ["string", "null"]},
        "records": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["id", "status"],
                "properties": {"id": _TEXT, "status": {"enum": ["ok", "failed"]}, "error": _TEXT},
            },
        },
    },
}
_JOBS: Final = {
    "type": "object",
    "required": ["jobs"],
    "properties": {"jobs": {"type": "array", "items": {"$ref": "#/components/schemas/Job"}}},
}
_JOB_ID: Final = {"name": "job", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}

_S = HTTPStatus
_CREATED: Final = {
    CreateAnswer.ACCEPTED_202: _S.ACCEPTED,
    CreateAnswer.CREATED_201: _S.CREATED,
    CreateAnswer.OK_200: _S.OK,
    CreateAnswer.SYNCHRONOUS: _S.OK,
}


def describe_jobs(contract: Contract, base_url: str) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of a provider with this contract."""
    one: dict[str, Any] = {"get": _operation("Read a job.", {_S.OK: "Job"}, (_S.NOT_FOUND,), [_JOB_ID])}
    paths: dict[str, Any] = {"/v1/jobs": {"post": _create(contract), "get": _look_up(contract)}, "/v1/jobs/{job}": one}
    cancel = _cancel(contract)
    if contract.cancel.method is CancelMethod.POST:
        paths["/v1/jobs/{job}/cancel"] = {"post": cancel}
    else:
        one["delete"] = cancel
    paths["/v1/jobs/{job}/result"] = {"get": _result(contract)}
    return {
        "openapi": "3.1.0",
        "info": {"title": f"A fake provider of jobs, contract {contract.name}", "version": "1"},
        "servers": [{"url": base_url}],
        "security": [{"bearer": []}],
        "paths": paths,
        "components": {
            "schemas": {"Problem": PROBLEM, "Job": _job(contract), "Jobs": _JOBS, "Report": _REPORT},
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


def _job(contract: Contract) -> dict[str, Any]:
    words = {"type": "string", "enum": list(contract.status.words.by_state.values())}
    return {**_JOB, "properties": {**_JOB["properties"], "status": words}}


def _operation(
    summary: str,
    good: dict[HTTPStatus, str],
    bad: tuple[HTTPStatus, ...],
    parameters: list[dict[str, Any]],
) -> dict[str, Any]:
    answers = {
        str(status.value): {
            "description": status.phrase,
            "content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}},
        }
        for status, schema in good.items()
    }
    answers |= {str(status.value): problem_answer(status) for status in (*bad, _S.UNAUTHORIZED)}
    return {"summary": summary, "parameters": parameters, "responses": answers}


def _create(contract: Contract) -> dict[str, Any]:
    promised = contract.idempotency
    properties: dict[str, Any] = {"kind": _TEXT, "client_reference": _TEXT, "parameters": {"type": "object"}}
    required = ["kind"]
    parameters: list[dict[str, Any]] = [
        {"name": "X-Client-Operation-Id", "in": "header", "required": False, "schema": _TEXT}
    ]
    if promised.mechanism is Mechanism.HEADER:
        key = {"type": "string", "pattern": '^"[A-Za-z0-9._-]{1,255}"$'}
        parameters.append({"name": "Idempotency-Key", "in": "header", "required": promised.required, "schema": key})
    elif promised.mechanism is Mechanism.BODY_FIELD:
        properties["request_id"] = {"type": "string", "minLength": 1, "maxLength": 255}
        required += ["request_id"] if promised.required else []
    bad = [_S.BAD_REQUEST, _S.REQUEST_ENTITY_TOO_LARGE, _S.INSUFFICIENT_STORAGE]
    if promised.mechanism is not Mechanism.NONE:
        bad += [_S.CONFLICT, _S.UNPROCESSABLE_ENTITY]
    told = _operation("Create a job.", {_CREATED[contract.create_answer]: "Job"}, tuple(bad), parameters)
    schema = {"type": "object", "required": required, "properties": properties}
    told["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    return told


def _look_up(contract: Contract) -> dict[str, Any]:
    name = {
        LookupBy.CLIENT_REFERENCE: "client_reference",
        LookupBy.OPERATION_ID: "operation_id",
        LookupBy.RECENT_BY_REQUEST_ID: "request_id",
    }.get(contract.lookup.by)
    parameters = [{"name": name, "in": "query", "required": True, "schema": _TEXT}] if name else []
    good = {_S.OK: "Jobs"} if name else {}
    return _operation("Look jobs up.", good, (_S.BAD_REQUEST, _S.NOT_FOUND), parameters)


def _cancel(contract: Contract) -> dict[str, Any]:
    good = {} if contract.cancel.effect is CancelEffect.UNSUPPORTED else {_S.OK: "Job", _S.ACCEPTED: "Job"}
    return _operation("Cancel a job.", good, (_S.NOT_FOUND, _S.METHOD_NOT_ALLOWED, _S.CONFLICT), [_JOB_ID])


def _result(contract: Contract) -> dict[str, Any]:
    parameters: list[dict[str, Any]] = [_JOB_ID]
    bad = [_S.NOT_FOUND, _S.CONFLICT, _S.GONE]
    if contract.result.kind is ResultKind.SIGNED_URL:
        parameters += [
            {"name": name, "in": "query", "required": True, "schema": _TEXT} for name in ("expires", "signature")
        ]
        bad.append(_S.FORBIDDEN)
    return _operation("Read a job's result.", {_S.OK: "Report"}, tuple(bad), parameters)
