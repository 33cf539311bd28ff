"""The ``jobs`` wire format: ``POST /v1/jobs`` and what follows from it. Pure.

Errors are ``application/problem+json``; the last part of ``type`` is the problem's name.
"""

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit

import msgspec

from reference_client.adapters.protocol import (
    Absent,
    Accepted,
    Ambiguous,
    Answer,
    CancelMeaning,
    CancelRefused,
    CancelTaken,
    Completed,
    Conflict,
    CreateMeaning,
    Event,
    Found,
    Gone,
    JobReport,
    LookupMeaning,
    Missing,
    Moved,
    NoAnswer,
    NotYet,
    Phase,
    Rejected,
    Request,
    RequestError,
    ResultMeaning,
    Retrieved,
    StatusMeaning,
    Unusable,
    path_at_origin,
)
from reference_client.config import CancelMethod, Lookup, Mechanism, Terms
from reference_client.operation import Operation, ResultReference, canonical_json

__all__ = ["JobsAdapter"]

_States = Mapping[str, tuple[Phase, int]]
"""The provider's words: what each means, and how far along a job in that state is."""

# Refusals of the request as such: an identical request sent before was refused for the same reason.
_JUDGES_REQUEST: Final = frozenset({400, 406, 413, 414, 415, 422})
# Refusals of something else. What remains (408, 409, 425, 429, 3xx, 5xx) does not say whether there is a job.
_REFUSES: Final = frozenset({401, 402, 403, 404, 405, 407, 410, 411, 451})

_DIGEST: Final = re.compile(r"sha-256=:([A-Za-z0-9+/=]+):")
_JOB_PATH: Final = re.compile(r"/v1/jobs/([^/]+)/?$")
_LISTED_FAILURES: Final = 100
_EVENTS: Final = frozenset({"job.running", "job.succeeded", "job.failed", "job.cancelled"})
"""The types of webhook events that are documented."""

_TEXT_LIMIT: Final = 200
"""Characters of a provider's free text that are kept: enough to read, too few to be a payload."""


class JobsAdapter:
    """Speaks ``jobs`` as one contract has it."""

    name: Final = "jobs"

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        words = terms.status.words
        self._states: _States = {
            words.queued: (Phase.ACTIVE, 0),
            words.running: (Phase.ACTIVE, 1),
            words.cancelling: (Phase.ACTIVE, 2),
            words.succeeded: (Phase.SUCCEEDED, 3),
            words.failed: (Phase.FAILED, 3),
            words.cancelled: (Phase.CANCELLED, 3),
        }

    # requests

    def prepare(self, operation_id: str, request: Mapping[str, Any]) -> tuple[bytes, str]:
        if self._terms.idempotency.mechanism is Mechanism.BODY_FIELD and "request_id" in request:
            raise RequestError("the request must not hold request_id: that is where the client puts its own token")
        reference = request.get("client_reference", operation_id)
        if not isinstance(reference, str) or not reference:
            raise RequestError(f"client_reference is {reference!r}; it must be a text that is not empty")
        return canonical_json({**request, "client_reference": reference}), reference

    def body_with_token(self, body: bytes, token: str) -> bytes:
        if self._terms.idempotency.mechanism is not Mechanism.BODY_FIELD:
            return body
        return canonical_json({**msgspec.json.decode(body), "request_id": token})

    def create(self, operation: Operation) -> Request:
        headers = {"content-type": "application/json"}
        if self._terms.idempotency.mechanism is Mechanism.HEADER:
            headers["idempotency-key"] = f'"{operation.idempotency_token}"'
        if self._terms.lookup.by is Lookup.OPERATION_ID:
            headers["x-client-operation-id"] = operation.operation_id
        return Request(method="POST", path=_jobs_path(operation), headers=headers, body=operation.request_body)

    def lookup(self, operation: Operation) -> Request:
        field, value = {
            Lookup.CLIENT_REFERENCE: ("client_reference", operation.client_reference),
            Lookup.OPERATION_ID: ("operation_id", operation.operation_id),
            Lookup.RECENT_BY_REQUEST_ID: ("request_id", operation.idempotency_token),
            Lookup.NONE: ("client_reference", operation.client_reference),
        }[self._terms.lookup.by]
        return Request(method="GET", path=f"{_jobs_path(operation)}?{field}={quote(value, safe='')}")

    def status(self, operation: Operation) -> Request:
        return Request(method="GET", path=operation.status_path or self._job_path(operation))

    def cancel(self, operation: Operation) -> Request:
        if self._terms.cancel.method is CancelMethod.POST:
            return Request(method="POST", path=f"{self._job_path(operation)}/cancel")
        return Request(method="DELETE", path=self._job_path(operation))

    def result(self, operation: Operation) -> Request:
        stated = operation.result.path if operation.result is not None else None
        return Request(method="GET", path=stated or f"{self._job_path(operation)}/result")

    @staticmethod
    def _job_path(operation: Operation) -> str:
        return f"{_jobs_path(operation)}/{quote(operation.remote_job_id or '', safe='')}"

    # answers

    def read_create(self, answer: Answer) -> CreateMeaning:
        status = answer.status
        if status in {200, 201, 202}:
            job = _job_in(answer, self._states)
            if isinstance(job, Unusable):
                return Ambiguous(job.error, job.detail)
            replayed = answer.headers.get("idempotency-replayed", "").lower() == "true"
            inline = job.result is not None and job.result.inline is not None
            if job.phase is Phase.SUCCEEDED and inline and status != 202:
                return Completed(job, replayed)
            location = answer.headers.get("location")
            return Accepted(job, path_at_origin(answer.url, location) if location else None, replayed)
        problem, detail = _problem(answer)
        if status == 422 and problem == "idempotency_key_reused":
            return Conflict(problem, detail)
        if status in _JUDGES_REQUEST:
            # A 422 that does not say why may be the one that says that the token is taken: by an earlier attempt, then.
            says_why = status != 422 or problem != _unnamed(answer)
            return Rejected(problem, detail, judges_request=says_why)
        if status in _REFUSES:
            return Rejected(problem, detail, judges_request=False)
        return Ambiguous(problem, detail)

    def job_named_in_passing(self, answer: NoAnswer) -> str | None:
        location = answer.headers.get("location")
        path = path_at_origin(answer.url, location) if location else None
        found = _JOB_PATH.search(path) if path is not None else None
        return None if found is None else unquote(found[1])

    def read_lookup(self, answer: Answer) -> LookupMeaning:
        if answer.status != 200:
            return Unusable(*_problem(answer))
        value = _json(answer)
        if isinstance(value, Unusable):
            return value
        listed = value.get("jobs")
        if not isinstance(listed, list):
            return Unusable("unreadable", "a look-up answer without a list of jobs")
        jobs = [_report(answer.url, each, self._states) for each in listed]
        if any(job is None for job in jobs):
            return Unusable("unreadable", "a look-up answer that lists something that is no job")
        found = tuple(job for job in jobs if job is not None)
        return Found(found) if found else Absent()

    def read_status(self, answer: Answer) -> StatusMeaning:
        if 300 <= answer.status < 400:
            return _moved(answer)
        problem, detail = ("", "") if answer.status == 200 else _problem(answer)
        if answer.status in {404, 410}:
            return Missing(detail)
        if answer.status != 200:
            return Unusable(problem, detail)
        return _job_in(answer, self._states)

    def read_cancel(self, answer: Answer) -> CancelMeaning:
        if answer.status in {200, 202, 204}:
            job = _job_in(answer, self._states)
            if isinstance(job, JobReport):
                return CancelTaken(f"job {job.state}", job.partial_effects)
            return CancelTaken(f"answer without a readable job ({job.detail})")
        problem, detail = _problem(answer)
        if answer.status == 409 and problem == "job_finished":
            return CancelRefused("finished", detail)
        if answer.status == 404:
            return CancelRefused("not_found", detail)
        if answer.status in {405, 501}:
            return CancelRefused("unsupported", detail)
        if answer.status in _JUDGES_REQUEST:
            return CancelRefused("refused", detail)
        return Unusable(problem, detail)

    def read_result(self, answer: Answer) -> ResultMeaning:
        if 300 <= answer.status < 400:
            return _moved(answer)
        if answer.status == 200:
            digest = _DIGEST.search(answer.headers.get("content-digest", ""))
            return Retrieved(answer.body, answer.headers.get("content-type"), _hex(digest[1]) if digest else None)
        problem, detail = _problem(answer)
        if answer.status == 409:
            return NotYet(detail)
        if answer.status in {403, 404, 410}:
            return Gone(detail)
        return Unusable(problem, detail)

    def validate_result(self, operation: Operation, body: bytes) -> tuple[int | None, tuple[str, ...], tuple[str, ...]]:
        try:
            value = msgspec.json.decode(body)
        except (msgspec.DecodeError, RecursionError) as error:
            return None, (), (f"the result is no JSON: {str(error)[:_TEXT_LIMIT]}",)
        records = value.get("records") if isinstance(value, dict) else None
        if not isinstance(records, list):
            return None, (), ("the result has no list of records",)
        problems: list[str] = []
        if value.get("client_reference") != operation.client_reference:
            problems.append("the result is for another client_reference")
        failed: list[str] = []
        seen: set[str] = set()
        for index, record in enumerate(records):
            reference = record.get("id") if isinstance(record, dict) else None
            if not isinstance(reference, str):
                problems.append(f"record {index} has no id")
                continue
            if reference in seen:
                problems.append(f"record {reference[:_TEXT_LIMIT]!r} comes twice")
            seen.add(reference)
            if record.get("status") != "ok":
                failed.append(reference)
        return len(records), tuple(failed), tuple(problems[:_LISTED_FAILURES])

    def read_event(self, body: bytes) -> Event | None:
        try:
            value = msgspec.json.decode(body)
        except (msgspec.DecodeError, RecursionError):
            return None
        kind = value.get("type") if isinstance(value, dict) else None
        if not isinstance(kind, str) or kind not in _EVENTS:
            return None  # a type that means nothing to us wakes nobody, or its sender could have us poll without end
        # An event steers nothing by itself, so no address in it is ever used: nothing was asked, so no origin matches.
        job = _report("", value.get("data"), self._states)
        return None if job is None else Event(type=kind, job=job)


def _jobs_path(operation: Operation) -> str:
    return f"{urlsplit(operation.target).path.rstrip('/')}/v1/jobs"


def _json(answer: Answer) -> dict[str, Any] | Unusable:
    kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and not kind.endswith("+json"):
        return Unusable("wrong_content_type", f"{answer.status} with content type {kind[:_TEXT_LIMIT] or 'none'}")
    try:
        value = msgspec.json.decode(answer.body)
    except (msgspec.DecodeError, RecursionError):
        return Unusable("invalid_json", f"{answer.status} with a body that is no JSON")
    if not isinstance(value, dict):
        return Unusable("unreadable", f"{answer.status} with a JSON body that is no object")
    return value


def _job_in(answer: Answer, states: _States) -> JobReport | Unusable:
    value = _json(answer)
    if isinstance(value, Unusable):
        return value
    return _report(answer.url, value, states) or Unusable("unreadable", f"{answer.status} with JSON that is no job")


def _report(asked: str, value: Any, states: _States) -> JobReport | None:
    if not isinstance(value, dict):
        return None
    job_id, state = value.get("id"), value.get("status")
    if not isinstance(job_id, str) or not job_id or not isinstance(state, str):
        return None
    result, notes = _result(asked, value.get("result"))
    phase, rank = states.get(state, (Phase.UNKNOWN, None))
    progress, error, effects = value.get("progress"), value.get("error"), value.get("partial_effects")
    return JobReport(
        job_id=job_id,
        state=state[:_TEXT_LIMIT],
        phase=phase,
        rank=rank,
        client_reference=reference if isinstance(reference := value.get("client_reference"), str) else None,
        progress=progress if type(progress) is int and 0 <= progress <= 100 else None,
        updated_at=_text(value.get("updated_at")),
        result=result,
        error=f"{error.get('code')}: {error.get('message')}"[:_TEXT_LIMIT] if isinstance(error, dict) else None,
        partial_effects=tuple(str(each)[:_TEXT_LIMIT] for each in effects[:_LISTED_FAILURES])
        if isinstance(effects, list)
        else (),
        notes=notes,
    )


def _result(asked: str, value: Any) -> tuple[ResultReference | None, tuple[str, ...]]:
    if not isinstance(value, dict):
        return None, ()
    href = value.get("href")
    notes: tuple[str, ...] = ()
    path = path_at_origin(asked, href) if isinstance(href, str) else None
    if href is not None and path is None:
        notes = ("the result's address leads to another origin and is not used",)
    return (
        ResultReference(
            path=path,
            content_type=_text(value.get("content_type")),
            size_bytes=_count(value.get("size")),
            sha256=_text(value.get("sha256")),
            records=_count(value.get("records")),
            failed_items=_count(value.get("failed")),
            inline=canonical_json(value["inline"]) if value.get("inline") is not None else None,
        ),
        notes,
    )


def _problem(answer: Answer) -> tuple[str, str]:
    """Return the problem's name, and one line about it."""
    value = _json(answer)
    name = _unnamed(answer)
    if isinstance(value, Unusable):
        return name, value.detail
    kind, detail = value.get("type"), value.get("detail", value.get("title"))
    if isinstance(kind, str) and kind.rpartition("/")[2]:
        name = kind.rpartition("/")[2].replace("-", "_")[:_TEXT_LIMIT]
    return name, f"{answer.status} {detail}"[:_TEXT_LIMIT] if isinstance(detail, str) else f"{answer.status} {name}"


def _unnamed(answer: Answer) -> str:
    """What a problem is called that does not say what it is."""
    return f"http_{answer.status}"


def _moved(answer: Answer) -> Moved:
    location = answer.headers.get("location", "")
    path = path_at_origin(answer.url, location) if location else None
    return Moved(path, f"{answer.status} to {'an address of the same origin' if path else 'no usable address'}")


def _text(value: Any) -> str | None:
    return value[:_TEXT_LIMIT] if isinstance(value, str) else None


def _count(value: Any) -> int | None:
    return value if type(value) is int and value >= 0 else None


def _hex(encoded: str) -> str | None:
    try:
        return base64.b64decode(encoded, validate=True).hex()
    except (binascii.Error, ValueError):
        return None
