"""The project's own wire format: plain REST and JSON, problems after RFC 9457, digests after RFC 9530.

    POST   /v1/jobs                      create
    GET    /v1/jobs/{id}                 status
    GET    /v1/jobs?client_reference=…   look-up; or operation_id=…, or request_id=…, as the contract says
    DELETE /v1/jobs/{id}                 cancel; or POST /v1/jobs/{id}/cancel, as the contract says
    GET    /v1/jobs/{id}/result          result

The request body of a create holds the marker ``client_reference``, by which a job is joined to the client's operation.
"""

import math
import re
from base64 import b64encode
from collections.abc import Sequence
from email.utils import formatdate
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

import msgspec

from fake_provider.calls import (
    Call,
    Cancel,
    Cancelled,
    Create,
    Created,
    Fetch,
    Found,
    JobView,
    Listed,
    Lookup,
    Problem,
    Read,
    Refused,
    Reply,
    Served,
)
from fake_provider.contract import CancelMethod, Contract, CreateAnswer, LookupBy, Mechanism, RetryAfter
from fake_provider.dialects.jobs_document import describe_jobs
from fake_provider.dialects.jobs_objects import JOBS, iso, job_object, job_url, problem_object, record_object
from fake_provider.facts import Endpoint, asked_digest, digest
from fake_provider.lifecycle import TERMINAL, JobState
from fake_provider.results import Row, canonical_json
from fake_provider.wire import MAX_BODY_BYTES, Answer, Request

__all__ = ["DIALECT", "JobsDialect"]

_ONE: Final = "/v1/jobs/"
_MAX_KEY: Final = 255  # characters, as published by several providers
_QUOTED_KEY: Final = re.compile(r'"((?:[ !#-\[\]-~]|\\["\\])*)"')  # a structured-field string (RFC 9651 §3.3.3)
_BARE_KEY: Final = re.compile(r"[!#-~]+")
_ESCAPED: Final = re.compile(r'\\(["\\])')

_QUERIES: Final = {
    "client_reference": LookupBy.CLIENT_REFERENCE,
    "operation_id": LookupBy.OPERATION_ID,
    "request_id": LookupBy.RECENT_BY_REQUEST_ID,
}
_STATUS_OF: Final = {
    Problem.INVALID_REQUEST: 400,
    Problem.KEY_MISSING: 400,
    Problem.KEY_REUSED: 422,
    Problem.IN_PROGRESS: 409,
    Problem.UNAUTHORIZED: 401,
    Problem.NOT_FOUND: 404,
    Problem.NOT_OFFERED: 404,
    Problem.METHOD_NOT_ALLOWED: 405,
    Problem.TOO_LARGE: 413,
    Problem.TOO_MANY_JOBS: 507,
    Problem.JOB_FINISHED: 409,
    Problem.CANCEL_IN_PROGRESS: 409,
    Problem.NOT_FINISHED: 409,
    Problem.RESULT_GONE: 410,
    Problem.LINK_EXPIRED: 410,
    Problem.LINK_INVALID: 403,
}
_CREATED_STATUS: Final = {
    CreateAnswer.ACCEPTED_202: 202,
    CreateAnswer.CREATED_201: 201,
    CreateAnswer.OK_200: 200,
    CreateAnswer.SYNCHRONOUS: 200,
}
_STATES: Final = {state.value: state for state in JobState}
_ENCODER: Final = msgspec.json.Encoder()
_JSON: Final = ("Content-Type", "application/json")
_PROBLEM: Final = ("Content-Type", "application/problem+json")


class JobsDialect:
    """The ``jobs`` wire format."""

    name = "jobs"
    summary = "The project's own: REST and JSON, problem details, Idempotency-Key, Standard Webhooks."
    endpoints = frozenset({Endpoint.CREATE, Endpoint.STATUS, Endpoint.CANCEL, Endpoint.RESULT, Endpoint.LOOKUP})
    likeness = Contract()
    job_prefix = "job_"
    upload_prefix = "doc_"

    def cannot_promise(self, contract: Contract) -> str | None:  # noqa: ARG002  it was made for all of them
        return None

    def words(self, contract: Contract) -> frozenset[str]:
        return frozenset(contract.status.words.by_state.values())

    def result(self, operation: str | None, rows: Sequence[Row]) -> tuple[bytes, bytes | None]:
        return canonical_json({"client_reference": operation, "records": [record_object(row) for row in rows]}), None

    # -- reading ---------------------------------------------------------------------------------------------------

    def read(self, request: Request, contract: Contract) -> Call:
        call = self._route(request, contract)
        if call.refusal is not None or "authorization" in request.headers:
            return call
        if isinstance(call, Fetch) and call.signature is not None:
            return call  # a signed URL is its own credential
        refusal = Refused(problem=Problem.UNAUTHORIZED, detail="send Authorization: Bearer …", job=call.job)
        return msgspec.structs.replace(call, refusal=refusal)

    def _route(self, request: Request, contract: Contract) -> Call:
        path, method = request.path, request.method
        if path == JOBS:
            if method == "POST":
                return self._read_create(request, contract)
            if method == "GET":
                return self._read_lookup(request)
            return _refuse(Endpoint.OTHER, Problem.METHOD_NOT_ALLOWED, f"{method} is not for {JOBS}: use GET or POST")
        prefix, _, tail = path.partition(_ONE)
        job, _, rest = tail.partition("/")
        if prefix or not job or "/" in rest:
            return _refuse(Endpoint.OTHER, Problem.NOT_FOUND, "there is nothing here: jobs are at /v1/jobs")
        job = unquote(job)
        if method == "GET" and not rest:
            return Read(job=job)
        if (method, rest) == ("GET", "result"):
            return _read_fetch(job, request.query)
        by_post = contract.cancel.method is CancelMethod.POST
        if (method, rest) == (("POST", "cancel") if by_post else ("DELETE", "")):
            return Cancel(job=job)
        if rest not in {"", "result"} and (method, rest) != ("POST", "cancel"):
            return _refuse(Endpoint.OTHER, Problem.NOT_FOUND, "there is nothing here", job)
        return _refuse(Endpoint.OTHER, Problem.METHOD_NOT_ALLOWED, f"{method} is not for this path", job)

    @staticmethod
    def _read_create(request: Request, contract: Contract) -> Call:
        if len(request.body) > MAX_BODY_BYTES:
            return _refuse(Endpoint.CREATE, Problem.TOO_LARGE, f"a body has at most {MAX_BODY_BYTES} bytes")
        document, complaint = _read_body(request.body)
        operation = document.get("client_reference")
        token: str | None = None
        mechanism = contract.idempotency.mechanism
        if mechanism is Mechanism.HEADER:
            header = request.headers.get("idempotency-key")
            token = _read_key(header) if header is not None else None
            if header is not None and token is None:
                complaint = (
                    complaint or "Idempotency-Key: not a string of 1 to 255 printable characters, quoted or bare"
                )
        elif mechanism is Mechanism.BODY_FIELD:
            token = document.get("request_id")
            if token is not None and not (isinstance(token, str) and 0 < len(token) <= _MAX_KEY):
                token, complaint = None, complaint or "request_id: not a string of 1 to 255 characters"
        refusal = None
        if complaint is not None:
            refusal = Refused(problem=Problem.INVALID_REQUEST, detail=complaint)
        elif token is None and mechanism is not Mechanism.NONE and contract.idempotency.required:
            where = "the header Idempotency-Key" if mechanism is Mechanism.HEADER else "the field request_id"
            refusal = Refused(problem=Problem.KEY_MISSING, detail=f"a create needs {where}")
        return Create(
            operation=operation if isinstance(operation, str) else None,
            token=token,
            scope=request.headers.get("authorization", ""),
            canonical=canonical_json(document),
            fingerprint=digest(request.body),
            asked=asked_digest(document) if complaint is None else None,
            operation_id=request.headers.get("x-client-operation-id"),
            refusal=refusal,
        )

    @staticmethod
    def _read_lookup(request: Request) -> Call:
        query = parse_qsl(request.query, keep_blank_values=True, max_num_fields=None)
        asked = [(name, value) for name, value in query if name in _QUERIES]
        if len(asked) != 1:
            known = ", ".join(_QUERIES)
            return _refuse(Endpoint.LOOKUP, Problem.INVALID_REQUEST, f"look up by exactly one of {known}")
        (name, value) = asked[0]
        by = _QUERIES[name]
        return Lookup(
            by=by,
            value=value,
            operation=value if by is LookupBy.CLIENT_REFERENCE else None,
            token=value if by is LookupBy.RECENT_BY_REQUEST_ID else None,
        )

    # -- writing ---------------------------------------------------------------------------------------------------

    def write(
        self, reply: Reply, *, call: Call, request: Request, contract: Contract, now: float, request_id: str
    ) -> Answer:
        match reply:
            case Found():
                return self._job(200, reply.view, request, contract, now, request_id)
            case Created():
                answer = self._job(
                    _CREATED_STATUS[contract.create_answer], reply.view, request, contract, now, request_id
                )
                location = ("Location", job_url(request.base_url, reply.view.id))
                marks = reply.replayed and contract.idempotency.replays_marked
                extra = (location, ("Idempotency-Replayed", "true")) if marks else (location,)
                return msgspec.structs.replace(answer, headers=answer.headers + extra, replayed=reply.replayed)
            case Cancelled():
                answer = self._job(200 if reply.confirmed else 202, reply.view, request, contract, now, request_id)
                if not reply.confirmed and answer.canonical_state in {JobState.QUEUED, JobState.RUNNING}:
                    # A best-effort cancel is answered as taken, whatever becomes of it.
                    view = msgspec.structs.replace(reply.view, state=JobState.CANCELLING)
                    answer = self._job(202, view, request, contract, now, request_id)
                return answer
            case Listed():
                return _listed(reply, contract, request, request_id)
            case Served():
                return _served(reply, request_id)
            case Refused():
                return _problem(reply, call, contract, request_id)
        raise TypeError(f"the jobs dialect cannot write a {type(reply).__name__}")

    @staticmethod
    def _job(status: int, view: JobView, request: Request, contract: Contract, now: float, request_id: str) -> Answer:
        headers = [_JSON, ("X-Request-Id", request_id)]
        canonical = _STATES.get(view.state)
        retry_after_s = None
        if canonical not in TERMINAL:
            promised = contract.status.retry_after_s
            if contract.status.retry_after is RetryAfter.SECONDS:
                headers.append(("Retry-After", str(promised)))
                retry_after_s = float(promised)
            elif contract.status.retry_after is RetryAfter.HTTP_DATE:
                due = math.ceil(now + promised)
                headers += [("Date", formatdate(now, usegmt=True)), ("Retry-After", formatdate(due, usegmt=True))]
                retry_after_s = due - now
        return Answer(
            status=status,
            headers=tuple(headers),
            body=_ENCODER.encode(job_object(view, contract, request.base_url)),
            job=view.id,
            operation=view.operation,
            remote_state=contract.status.words.tell(view.state),
            canonical_state=canonical,
            progress=view.progress,
            retry_after_s=retry_after_s,
            retry_after_is_date=retry_after_s is not None and contract.status.retry_after is RetryAfter.HTTP_DATE,
            request_id=request_id,
        )

    def trouble(self, status: int, detail: str) -> Answer:
        slug = _TROUBLES.get(status, "server_error")
        return Answer(
            status=status, headers=(_PROBLEM,), body=_ENCODER.encode(problem_object(status, slug, detail)), problem=slug
        )

    def openapi(self, contract: Contract, base_url: str) -> dict[str, Any]:
        return describe_jobs(contract, base_url)

    def event(
        self,
        view: JobView,
        *,
        event: str,  # noqa: ARG002  its id is in the header only
        kind: str | None,
        contract: Contract,
        now: float,
        base_url: str,
    ) -> tuple[str, bytes]:
        name = kind or f"job.{view.state}"
        return name, _ENCODER.encode(
            {"type": name, "timestamp": iso(now), "data": job_object(view, contract, base_url)}
        )


_TROUBLES: Final = {
    400: "invalid_request",
    404: "not_found",
    408: "request_timeout",
    409: "request_in_progress",
    413: "too_large",
    422: "unprocessable_request",
    429: "too_many_requests",
    500: "internal_error",
    502: "bad_gateway",
    503: "unavailable",
    504: "gateway_timeout",
}


def _refuse(endpoint: Endpoint, problem: Problem, detail: str, job: str | None = None) -> Call:
    return Call(endpoint=endpoint, job=job, refusal=Refused(problem=problem, detail=detail, job=job))


_FIELDS: Final = (
    ("kind", str, "a string"),
    ("client_reference", str, "a string"),
    ("parameters", dict, "an object"),
)


def _read_body(body: bytes) -> tuple[dict[str, Any], str | None]:
    """Return the create request, and what is wrong with it."""
    try:
        document = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        return {}, f"the body is no JSON: {error}"
    if not isinstance(document, dict):
        return {}, "the body is no JSON object"
    for name, shape, said in _FIELDS:
        value = document.get(name)
        if value is None and name == "kind":
            return document, "kind: missing; it says what the job is to do"
        if value is not None and not isinstance(value, shape):
            return document, f"{name}: not {said}"
    return document, None


def _read_key(text: str) -> str | None:
    """Return the key in an Idempotency-Key header, quoted (structured field) or bare; None if there is none."""
    quoted = _QUOTED_KEY.fullmatch(text)
    if quoted is not None:
        key = _ESCAPED.sub(r"\1", quoted[1])
    elif _BARE_KEY.fullmatch(text):
        key = text
    else:
        return None
    return key if 0 < len(key) <= _MAX_KEY else None


def _read_fetch(job: str, query: str) -> Fetch:
    if not query:
        return Fetch(job=job)
    asked = dict(parse_qsl(query))
    expires = asked.get("expires", "")
    plausible = expires.isascii() and expires.isdigit() and len(expires) < 16
    return Fetch(job=job, expires=int(expires) if plausible else None, signature=asked.get("signature"))


def _listed(reply: Listed, contract: Contract, request: Request, request_id: str) -> Answer:
    jobs = [job_object(view, contract, request.base_url) for view in reply.views]
    only = reply.views[0] if len(reply.views) == 1 else None
    return Answer(
        status=200,
        headers=(_JSON, ("X-Request-Id", request_id)),
        body=_ENCODER.encode({"jobs": jobs}),
        job=only.id if only else None,
        jobs=tuple(view.id for view in reply.views) if len(reply.views) > 1 else (),
        operation=reply.views[0].operation if reply.views else None,
        remote_state=contract.status.words.tell(only.state) if only else None,
        canonical_state=_STATES.get(only.state) if only else None,
        progress=only.progress if only else None,
        request_id=request_id,
    )


def _served(reply: Served, request_id: str) -> Answer:
    headers: tuple[tuple[str, str], ...] = (("Content-Type", reply.content_type), ("X-Request-Id", request_id))
    if reply.sha256 is not None:
        digest = b64encode(bytes.fromhex(reply.sha256)).decode()
        headers += (("Content-Digest", f"sha-256=:{digest}:"),)
    return Answer(
        status=200, headers=headers, body=reply.body, job=reply.job, operation=reply.operation, request_id=request_id
    )


def _problem(reply: Refused, call: Call, contract: Contract, request_id: str) -> Answer:
    status = _STATUS_OF[reply.problem]
    headers: tuple[tuple[str, str], ...] = (_PROBLEM, ("X-Request-Id", request_id))
    if reply.problem is Problem.UNAUTHORIZED:
        headers += (("WWW-Authenticate", "Bearer"),)
    if reply.problem is Problem.METHOD_NOT_ALLOWED:
        headers += (("Allow", _allowed(call, contract)),)
    return Answer(
        status=status,
        headers=headers,
        body=_ENCODER.encode(problem_object(status, reply.problem, reply.detail)),
        job=reply.job,
        problem=reply.problem,
        request_id=request_id,
    )


def _allowed(call: Call, contract: Contract) -> str:
    if call.job is None:
        return "GET, POST"
    by_post = contract.cancel.method is CancelMethod.POST
    return "GET" if by_post or call.endpoint is Endpoint.CANCEL else "GET, DELETE"


DIALECT: Final = JobsDialect()
