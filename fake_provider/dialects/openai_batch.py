"""The Batch API of OpenAI, as the ``openai`` package speaks it: batches, the files they need, and their webhooks.

    POST /v1/files                   upload a JSONL file, one request a line (multipart: ``purpose``, ``file``)
    GET  /v1/files/{id}              a file; /content for what is in it
    POST /v1/batches                 create
    GET  /v1/batches/{id}            status
    GET  /v1/batches?after=…&limit=… look-up: all batches, the newest first, with their metadata
    POST /v1/batches/{id}/cancel     cancel

The marker by which a job is joined to the client's operation is ``metadata.client_reference``. The result of a job is
its output file, with the requests that succeeded; those that failed are in the error file, which lies beside it. Where
all of them failed there is no output file, and the error file is the result. Rows come in an order of their own.
"""

import hashlib
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

import msgspec

from fake_provider.calls import (
    EXPIRED,
    Browse,
    Call,
    Cancel,
    Cancelled,
    Create,
    Created,
    Fetch,
    Found,
    JobView,
    Listed,
    Problem,
    Read,
    ReadUpload,
    Refused,
    Reply,
    Served,
    Uploaded,
)
from fake_provider.contract import (
    Cancel as CancelTerms,
)
from fake_provider.contract import (
    CancelEffect,
    CancelMethod,
    Contract,
    CreateAnswer,
    Idempotency,
    Lookup,
    LookupBy,
    Mechanism,
    Result,
    ResultKind,
    RetryAfter,
    StateWords,
    Status,
)
from fake_provider.dialects.openai_batch_document import (
    BATCHES,
    FILES,
    FINALIZING,
    LONGEST_PAGE,
    MOST_METADATA,
    WORDS,
    describe_batches,
)
from fake_provider.dialects.openai_batch_objects import (
    WINDOW_S,
    batch_object,
    error_object,
    file_object,
    result_file_id,
    result_file_named,
    result_line,
    status_of,
)
from fake_provider.dialects.openai_batch_uploads import read_upload
from fake_provider.facts import Endpoint, digest
from fake_provider.lifecycle import JobState
from fake_provider.results import Row, canonical_json
from fake_provider.wire import MAX_BODY_BYTES, Answer, Request

__all__ = ["DIALECT", "OpenAIBatchDialect"]

_STATES: Final = {state.value: state for state in JobState}
_STATUS_OF: Final = {
    Problem.UNAUTHORIZED: 401,
    Problem.NOT_FOUND: 404,
    Problem.NOT_OFFERED: 404,
    Problem.METHOD_NOT_ALLOWED: 405,
    Problem.TOO_LARGE: 413,
    Problem.TOO_MANY_JOBS: 429,
    Problem.IN_PROGRESS: 409,
    Problem.JOB_FINISHED: 409,
    Problem.CANCEL_IN_PROGRESS: 409,
    Problem.NOT_FINISHED: 404,
    Problem.RESULT_GONE: 404,
    Problem.LINK_EXPIRED: 404,
}
_TROUBLES: Final = {408: "request_timeout", 409: "conflict", 429: "rate_limit_exceeded", 503: "service_unavailable"}
_JSON: Final = ("Content-Type", "application/json")
_ENCODE: Final = msgspec.json.Encoder().encode


class _ReadFile(Read, frozen=True, kw_only=True):
    """Tell of one of a job's result files."""

    annex: bool = False


class OpenAIBatchDialect:
    """The ``openai-batch`` wire format."""

    name = "openai-batch"
    summary = "OpenAI's Batch API as the openai package speaks it: batches, their files, their webhooks."
    likeness = Contract(
        name="openai-batch",
        idempotency=Idempotency(mechanism=Mechanism.NONE),
        lookup=Lookup(authoritative=False),
        create_answer=CreateAnswer.OK_200,
        cancel=CancelTerms(method=CancelMethod.POST),
        status=Status(retry_after=RetryAfter.NONE),
        result=Result(checksum=False, size=False, partial=True),
        time_limit_s=WINDOW_S,
    )
    job_prefix = "batch_"
    upload_prefix = "file-"
    endpoints = frozenset(
        {
            *(Endpoint.CREATE, Endpoint.STATUS, Endpoint.CANCEL, Endpoint.RESULT, Endpoint.LOOKUP),
            *(Endpoint.UPLOAD, Endpoint.ANNEX),
        }
    )

    def words(self, contract: Contract) -> frozenset[str]:  # noqa: ARG002  they are its own
        return frozenset({*WORDS.values(), FINALIZING, EXPIRED})

    def cannot_promise(self, contract: Contract) -> str | None:
        wrong = {
            "idempotency.mechanism: no field of the body is a key": (
                contract.idempotency.mechanism is Mechanism.BODY_FIELD
            ),
            "lookup.by: batches are listed with their metadata (by_client_reference), or not at all": (
                contract.lookup.by not in {LookupBy.CLIENT_REFERENCE, LookupBy.NONE}
            ),
            "create_answer: a create is answered 200 (ok_200)": contract.create_answer is not CreateAnswer.OK_200,
            "cancel.method: a batch is cancelled by POST": contract.cancel.method is not CancelMethod.POST,
            "status.words: a batch tells its state in words of its own": contract.status.words != StateWords(),
            "status.retry_after: no status carries one": contract.status.retry_after is not RetryAfter.NONE,
            "result.kind: results are files (endpoint or one_time)": (
                contract.result.kind not in {ResultKind.ENDPOINT, ResultKind.ONE_TIME}
            ),
            "result.checksum and result.size: a batch states neither": contract.result.checksum or contract.result.size,
            "result.record_count: request_counts are always stated": not contract.result.record_count,
            "webhooks.progress_events: there are events for the end of a batch only": contract.webhooks.progress_events,
        }
        return "; ".join(reason for reason, is_so in wrong.items() if is_so) or None

    def result(self, operation: str | None, rows: Sequence[Row]) -> tuple[bytes, bytes | None]:
        shuffled = sorted(rows, key=lambda row: hashlib.sha256(f"{operation} {row.id}".encode()).digest())
        good = b"".join(result_line(row) for row in shuffled if row.error is None or row.id is None)
        bad = b"".join(result_line(row) for row in shuffled if row.error is not None and row.id is not None)
        return (good, bad or None) if good or not bad else (bad, None)

    # -- reading ---------------------------------------------------------------------------------------------------

    def read(self, request: Request, contract: Contract) -> Call:
        call = _route(request, contract)
        if call.refusal is not None or "authorization" in request.headers:
            return call
        refusal = Refused(problem=Problem.UNAUTHORIZED, detail="send Authorization: Bearer …", job=call.job)
        return msgspec.structs.replace(call, refusal=refusal)

    # -- writing ---------------------------------------------------------------------------------------------------

    def write(
        self,
        reply: Reply,
        *,
        call: Call,
        request: Request,
        contract: Contract,
        now: float,  # noqa: ARG002  the reply knows its times
        request_id: str,
    ) -> Answer:
        match reply:
            case Found(view=view) if isinstance(call, _ReadFile):
                return _result_file(view, request_id, annex=call.annex)
            case Found(view=view):
                return _told(view, request_id)
            case Created(view=view, replayed=replayed):
                return msgspec.structs.replace(_told(view, request_id), replayed=replayed)
            case Cancelled(view=view, confirmed=confirmed):
                if not confirmed and view.state in {JobState.QUEUED, JobState.RUNNING}:
                    view = msgspec.structs.replace(view, state=JobState.CANCELLING)  # taken, whatever becomes of it
                return _told(view, request_id)
            case Listed():
                return _listed(reply, request_id)
            case Uploaded(file=file, content=True):
                return Answer(status=200, headers=_bytes(request_id), body=file.content, request_id=request_id)
            case Uploaded(file=file):
                return _answer(
                    file_object(file.id, file.name, file.purpose, len(file.content), file.created_at), request_id
                )
            case Served():
                return Answer(
                    status=200,
                    headers=_bytes(request_id, reply.content_type),
                    body=reply.body,
                    job=reply.job,
                    operation=reply.operation,
                    request_id=request_id,
                )
            case Refused():
                answer = _refused(reply, request_id)
                if reply.problem is Problem.METHOD_NOT_ALLOWED:
                    return answer.with_header("Allow", _allowed(request.path, contract))
                return answer
        raise TypeError(f"the openai-batch dialect cannot write a {type(reply).__name__}")

    def trouble(self, status: int, detail: str) -> Answer:
        code = _TROUBLES.get(status, "server_error")
        return Answer(status=status, headers=(_JSON,), body=_error(detail, code, status), problem=code)

    def event(
        self,
        view: JobView,
        *,
        event: str,
        kind: str | None,
        contract: Contract,  # noqa: ARG002  no event tells a state but by its type
        now: float,
        base_url: str,  # noqa: ARG002  no event holds a URL
    ) -> tuple[str, bytes]:
        name = kind or f"batch.{status_of(view)}"
        body = {"object": "event", "id": event, "type": name, "created_at": int(now), "data": {"id": view.id}}
        return name, _ENCODE(body)

    def openapi(self, contract: Contract, base_url: str) -> dict[str, Any]:
        return describe_batches(contract, base_url)


DIALECT: Final = OpenAIBatchDialect()


def _route(request: Request, contract: Contract) -> Call:
    method, path = request.method, request.path
    if path == FILES:
        return read_upload(request) if method == "POST" else _wrong_method(path)
    if path == BATCHES:
        if method == "POST":
            return _read_create(request, contract)
        return _read_browse(request.query) if method == "GET" else _wrong_method(path)
    parts = [unquote(part) for part in path.split("/")]
    match parts:
        case ["", "v1", "batches", str(job)] if job:
            return Read(job=job) if method == "GET" else _wrong_method(path)
        case ["", "v1", "batches", str(job), "cancel"] if job:
            return Cancel(job=job) if method == "POST" else _wrong_method(path)
        case ["", "v1", "files", str(name)] if name:
            return _read_file(name, content=False) if method == "GET" else _wrong_method(path)
        case ["", "v1", "files", str(name), "content"] if name:
            return _read_file(name, content=True) if method == "GET" else _wrong_method(path)
    return _refuse(Endpoint.OTHER, Problem.NOT_FOUND, f"Invalid URL ({method} {path})")


def _refuse(endpoint: Endpoint, problem: Problem, detail: str) -> Call:
    return Call(endpoint=endpoint, refusal=Refused(problem=problem, detail=detail))


def _wrong_method(path: str) -> Call:
    return _refuse(Endpoint.OTHER, Problem.METHOD_NOT_ALLOWED, f"this method is not for {path}")


def _read_file(name: str, *, content: bool) -> Call:
    named = result_file_named(name)
    if named is None:
        return ReadUpload(upload=name, content=content)
    job, annex = named
    if not content:
        return _ReadFile(job=job, annex=annex, endpoint=Endpoint.OTHER)
    return Fetch(job=job, endpoint=Endpoint.ANNEX if annex else Endpoint.RESULT)


def _read_browse(query: str) -> Call:
    asked = dict(parse_qsl(query))
    limit = asked.get("limit", "20")
    if not (limit.isascii() and limit.isdigit() and 1 <= int(limit[:4]) <= LONGEST_PAGE):
        return _refuse(Endpoint.LOOKUP, Problem.INVALID_REQUEST, f"limit: not a number from 1 to {LONGEST_PAGE}")
    return Browse(after=asked.get("after"), limit=int(limit))


def _read_create(request: Request, contract: Contract) -> Call:
    if len(request.body) > MAX_BODY_BYTES:
        return _refuse(Endpoint.CREATE, Problem.TOO_LARGE, f"a body has at most {MAX_BODY_BYTES} bytes")
    document, complaint = _read_body(request.body)
    metadata = document.get("metadata")
    marker = metadata.get("client_reference") if isinstance(metadata, dict) else None
    token, problem = None, Problem.INVALID_REQUEST
    if contract.idempotency.mechanism is Mechanism.HEADER:
        token = request.headers.get("idempotency-key")
        if token is None and contract.idempotency.required and complaint is None:
            complaint, problem = "a create needs the header Idempotency-Key", Problem.KEY_MISSING
    source = document.get("input_file_id")
    return Create(
        operation=marker if isinstance(marker, str) else None,
        token=token,
        scope=request.headers.get("authorization", ""),
        canonical=canonical_json(document),
        fingerprint=digest(request.body),
        upload=source if isinstance(source, str) else None,
        memo={name: document.get(name) for name in ("endpoint", "completion_window", "metadata")},
        refusal=Refused(problem=problem, detail=complaint) if complaint is not None else None,
    )


def _read_body(body: bytes) -> tuple[dict[str, Any], str | None]:
    """Return the create request, and what is wrong with it."""
    try:
        document = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        return {}, f"We could not parse the JSON body of your request: {error}"
    if not isinstance(document, dict):
        return {}, "the body is no JSON object"
    if not isinstance(document.get("input_file_id"), str):
        return document, "Missing required parameter: 'input_file_id'."
    endpoint = document.get("endpoint")
    if not isinstance(endpoint, str) or not endpoint.startswith("/v1/"):
        return document, "endpoint: not one that batches are for, such as /v1/responses"
    if document.get("completion_window") != "24h":
        return document, "completion_window: only 24h is supported"
    metadata = document.get("metadata")
    if metadata is not None and not (
        isinstance(metadata, dict)
        and len(metadata) <= MOST_METADATA
        and all(isinstance(value, str) for value in metadata.values())
    ):
        return document, f"metadata: not an object of at most {MOST_METADATA} strings"
    return document, None


def _told(view: JobView, request_id: str) -> Answer:
    return _about(view, _answer(batch_object(view), request_id))


def _listed(reply: Listed, request_id: str) -> Answer:
    batches = [batch_object(view) for view in reply.views]
    page = {
        "object": "list",
        "data": batches,
        "first_id": batches[0]["id"] if batches else None,
        "last_id": batches[-1]["id"] if batches else None,
        "has_more": reply.more,
    }
    answer = _answer(page, request_id)
    return _about(reply.views[0], answer) if len(reply.views) == 1 else answer


def _about(view: JobView, answer: Answer) -> Answer:
    """Say of an answer which job it tells of, and what."""
    return msgspec.structs.replace(
        answer,
        job=view.id,
        operation=view.operation,
        remote_state=status_of(view),
        canonical_state=_STATES.get(view.state),
        progress=view.progress,
    )


def _result_file(view: JobView, request_id: str, *, annex: bool) -> Answer:
    result, name = view.result, result_file_id(view, annex=annex)
    if result is None or (annex and result.annex_size is None):
        missing = Refused(problem=Problem.NOT_FOUND, detail=f"No such File object: {name}", job=view.id)
        return _refused(missing, request_id)
    size = (result.annex_size or 0) if annex else result.length
    kind = "error" if annex or (result.records and result.failed == result.records) else "output"
    return _answer(
        file_object(name, f"{view.id}_{kind}.jsonl", "batch_output", size, view.updated_at),
        request_id,
    )


def _answer(document: dict[str, Any], request_id: str) -> Answer:
    headers = (_JSON, ("x-request-id", request_id))
    return Answer(status=200, headers=headers, body=_ENCODE(document), request_id=request_id)


def _bytes(request_id: str, kind: str = "application/octet-stream") -> tuple[tuple[str, str], ...]:
    if kind == "application/json":  # what the provider says of results that are documents; these are files
        kind = "application/octet-stream"
    return (("Content-Type", kind), ("x-request-id", request_id))


def _error(message: str, code: str, status: int) -> bytes:
    return _ENCODE({"error": error_object(message, code, status)})


def _allowed(path: str, contract: Contract) -> str:
    """Return the methods that a path takes."""
    if path == BATCHES:
        return "GET, POST"
    if path == FILES:
        return "POST"
    if path.startswith(BATCHES) and path.endswith("/cancel"):
        return "" if contract.cancel.effect is CancelEffect.UNSUPPORTED else "POST"
    return "GET"


def _refused(reply: Refused, request_id: str) -> Answer:
    status = _STATUS_OF.get(reply.problem, 400)
    return Answer(
        status=status,
        headers=(_JSON, ("x-request-id", request_id)),
        body=_error(reply.detail, reply.problem, status),
        job=reply.job,
        problem=reply.problem,
        request_id=request_id,
    )
