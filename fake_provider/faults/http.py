"""Answers that HTTP allows and clients misread: errors, odd Retry-After values, bodies of the wrong kind.

At ``received`` such an answer comes from something in front of the provider and nothing was done; at ``committed`` the
provider had done what was asked.
"""

import math
from email.utils import formatdate
from typing import ClassVar, Literal

import msgspec
from pydantic import Field

from fake_provider.facts import CommitPoint, Endpoint
from fake_provider.faults.course import Course
from fake_provider.faults.kinds import AT_HTTP, Fault, Places, fault_kind, places
from fake_provider.wire import Answer

__all__ = [
    "ConflictInProgress",
    "CreateRejected",
    "HtmlBody",
    "InvalidJson",
    "Redirect",
    "RetryAfterForm",
    "ServerError",
    "TooManyRequests",
    "WrongContentType",
]

_BOTH = places(AT_HTTP, CommitPoint.RECEIVED, CommitPoint.COMMITTED)
_AFTER = places(AT_HTTP, CommitPoint.COMMITTED)

_HUGE_S = 10**10  # three centuries: fits a float, overflows a 32-bit count of seconds
_A_DAY_S = 86_400

Form = Literal["seconds", "http_date", "past_date", "negative", "fraction", "junk", "huge"]


def _with_retry_after(answer: Answer, form: Form, seconds: float, now: float) -> Answer:
    """Put in a Retry-After of that form, and what a client may make of it (RFC 9110 §10.2.3)."""
    whole = math.ceil(now + seconds)
    text, asks_for = {
        "seconds": (str(math.ceil(seconds)), float(math.ceil(seconds))),
        "http_date": (formatdate(whole, usegmt=True), whole - now),
        "past_date": (formatdate(math.floor(now) - _A_DAY_S, usegmt=True), 0.0),
        "negative": (f"-{math.ceil(seconds) or 1}", None),
        "fraction": (f"{math.floor(seconds)}.5", None),
        "junk": ("soon", None),
        "huge": (str(_HUGE_S), float(_HUGE_S)),
    }[form]
    return msgspec.structs.replace(
        answer.with_header("Retry-After", text),
        retry_after_s=asks_for,
        retry_after_is_date=form in {"http_date", "past_date"},
    )


@fault_kind
class ServerError(Fault):
    """A 5xx or 408 is answered, by something in front of the provider or after it has done what was asked."""

    strikes_at: ClassVar[Places] = _BOTH
    kind: Literal["server_error"] = "server_error"
    status: Literal[408, 500, 502, 503, 504] = 503
    retry_after_s: float | None = Field(None, ge=0, description="Seconds it asks to wait; left out: it does not.")

    def strike(self, course: Course) -> None:
        answer = course.world.dialect.trouble(self.status, "a fault was planned here")
        if self.retry_after_s is not None:
            answer = _with_retry_after(answer, "seconds", self.retry_after_s, course.now)
        course.answer_with(answer)


@fault_kind
class TooManyRequests(Fault):
    """A 429 is answered, with a Retry-After."""

    strikes_at: ClassVar[Places] = _BOTH
    kind: Literal["too_many_requests"] = "too_many_requests"
    retry_after_s: float = Field(2, ge=0, description="Seconds the answer asks to wait.")
    form: Form = Field("seconds", description="How the Retry-After is written.")

    def strike(self, course: Course) -> None:
        answer = course.world.dialect.trouble(429, "too many requests")
        course.answer_with(_with_retry_after(answer, self.form, self.retry_after_s, course.now))


@fault_kind
class ConflictInProgress(Fault):
    """A 409 says that an earlier request is still being worked on."""

    strikes_at: ClassVar[Places] = _BOTH
    kind: Literal["conflict_in_progress"] = "conflict_in_progress"

    def strike(self, course: Course) -> None:
        answer = course.world.dialect.trouble(409, "an earlier request is still being worked on")
        course.answer_with(msgspec.structs.replace(answer, problem="request_in_progress"))


@fault_kind
class CreateRejected(Fault):
    """The create is refused for good, as invalid, too large or not allowed, and nothing is done."""

    strikes_at: ClassVar[Places] = places((Endpoint.CREATE,), CommitPoint.RECEIVED)
    kind: Literal["create_rejected"] = "create_rejected"
    status: Literal[400, 404, 413, 422] = 400

    def strike(self, course: Course) -> None:
        course.answer_with(course.world.dialect.trouble(self.status, "this request is refused"))


@fault_kind
class RetryAfterForm(Fault):
    """The answer carries a Retry-After of this form, whatever the contract says."""

    strikes_at: ClassVar[Places] = _AFTER
    kind: Literal["retry_after"] = "retry_after"
    form: Form = "seconds"
    seconds: float = Field(3, ge=0, description="The delay it asks for, in the forms that can say so.")

    def strike(self, course: Course) -> None:
        now = course.now
        course.alter(lambda answer: _with_retry_after(answer, self.form, self.seconds, now))


@fault_kind
class HtmlBody(Fault):
    """A page in HTML is answered with 200, as a proxy or a login wall does."""

    strikes_at: ClassVar[Places] = _BOTH
    kind: Literal["html_body"] = "html_body"

    def strike(self, course: Course) -> None:
        body = b"<!doctype html><title>Please wait</title><p>We are checking your browser.</p>"
        course.answer_with(Answer(status=200, headers=(("Content-Type", "text/html; charset=utf-8"),), body=body))


@fault_kind
class InvalidJson(Fault):
    """The body says that it is JSON and stops being so halfway; its length is as announced."""

    strikes_at: ClassVar[Places] = _AFTER
    kind: Literal["invalid_json"] = "invalid_json"

    def strike(self, course: Course) -> None:
        course.alter(_break_json)


def _break_json(answer: Answer) -> Answer:
    return Answer(
        status=answer.status,
        headers=answer.headers,
        body=answer.body[: len(answer.body) // 2] or b"{",
        retry_after_s=answer.retry_after_s,
        retry_after_is_date=answer.retry_after_is_date,
        request_id=answer.request_id,
    )


@fault_kind
class WrongContentType(Fault):
    """The answer is as it should be, but for its Content-Type: text/plain."""

    strikes_at: ClassVar[Places] = _AFTER
    kind: Literal["wrong_content_type"] = "wrong_content_type"

    def strike(self, course: Course) -> None:
        course.alter(lambda answer: answer.with_header("Content-Type", "text/plain"))


@fault_kind
class Redirect(Fault):
    """A redirect is answered, to the same URL or to the same path at an origin the credential is not for."""

    strikes_at: ClassVar[Places] = _BOTH
    kind: Literal["redirect"] = "redirect"
    status: Literal[301, 302, 303, 307, 308] = 307
    to: Literal["same_origin", "other_origin"] = "other_origin"

    def strike(self, course: Course) -> None:
        url = course.url(elsewhere=self.to == "other_origin")
        course.answer_with(Answer(status=self.status, headers=(("Location", url),), body=b""))
