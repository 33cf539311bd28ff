"""What is wrong with a result, though the job succeeded."""

from collections.abc import Callable
from typing import ClassVar, Literal

import msgspec
from pydantic import Field

from fake_provider.calls import Problem, Refused, Served
from fake_provider.facts import CommitPoint, Endpoint
from fake_provider.faults.course import Course
from fake_provider.faults.kinds import Fault, Places, fault_kind, places
from fake_provider.results import Row
from fake_provider.wire import Answer

__all__ = [
    "ResultBehindRedirect",
    "ResultConsumed",
    "ResultCutShort",
    "ResultErrorRow",
    "ResultExpired",
    "ResultFailedItems",
    "ResultRecordsMissing",
    "ResultWrongChecksum",
    "ResultWrongType",
]

_P = CommitPoint
_SERVING = places((Endpoint.RESULT, Endpoint.ANNEX), _P.COMMITTED)
_ASKED = places((Endpoint.RESULT, Endpoint.ANNEX), _P.RECEIVED)
_TOLD = places((Endpoint.RESULT, Endpoint.STATUS, Endpoint.CREATE), _P.COMMITTED)
"""A result that is part of the job is harmed where the job is told."""


def _harm(course: Course, change: Callable[[bytes], bytes]) -> bool:
    """Change the bytes that are served, or the result's inside the job; what was stated of them stays as it was."""
    reply, view = course.reply, course.view
    if isinstance(reply, Served):
        course.reply_with(msgspec.structs.replace(reply, body=change(reply.body)))
        return True
    if view is not None and view.result is not None and view.result.inline is not None:
        course.show(result=msgspec.structs.replace(view.result, inline=change(view.result.inline)))
        return True
    return False


def _harm_rows(course: Course, change: Callable[[list[Row]], list[Row]]) -> bool:
    """Change the result's rows, as :func:`_harm` does its bytes. There must be some."""
    job = course.job
    if job is None or job.result is None or not job.result.rows:
        return False
    harmed, _ = course.world.dialect.result(job.operation, change(list(job.result.rows)))
    return _harm(course, lambda _: harmed)


def _other_letter(text: str) -> str:
    """Return a text of the same length that differs in its last character."""
    return text[:-1] + ("0" if text[-1:] != "0" else "1")


def _end_of_job(course: Course) -> bool:
    return course.job is not None and course.job.result is not None


@fault_kind
class ResultExpired(Fault):
    """The result, or the link to it, is said to have expired; the job's status holds a new one where links expire."""

    strikes_at: ClassVar[Places] = _ASKED
    kind: Literal["result_expired"] = "result_expired"

    def strike(self, course: Course) -> bool:
        if not _end_of_job(course):
            return False
        course.reply_with(Refused(problem=Problem.LINK_EXPIRED, detail="this link has expired"))
        return True


@fault_kind
class ResultConsumed(Fault):
    """The result is gone, as though it had been read before."""

    strikes_at: ClassVar[Places] = _ASKED
    kind: Literal["result_consumed"] = "result_consumed"

    def strike(self, course: Course) -> bool:
        if not _end_of_job(course):
            return False
        course.reply_with(Refused(problem=Problem.RESULT_GONE, detail="this result was read and is kept no longer"))
        return True


@fault_kind
class ResultWrongChecksum(Fault):
    """A character of the result is not what the stated checksum was made of; length and form are as they should be."""

    strikes_at: ClassVar[Places] = _TOLD
    kind: Literal["result_wrong_checksum"] = "result_wrong_checksum"

    def strike(self, course: Course) -> bool:
        job = course.job
        if job is None or job.result is None:
            return False
        write, rows = course.world.dialect.result, job.result.rows
        harmed, _ = write(_other_letter(job.operation or ""), rows)
        if len(harmed) != len(job.result.body) or harmed == job.result.body:  # the result does not say whose it is
            if not rows:
                return False
            first = msgspec.structs.replace(rows[0], id=_other_letter(rows[0].id or ""))
            harmed, _ = write(job.operation, (first, *rows[1:]))
        return _harm(course, lambda _: harmed)


@fault_kind
class ResultCutShort(Fault):
    """The result ends halfway, in an answer whose length says that this is all."""

    strikes_at: ClassVar[Places] = _SERVING
    kind: Literal["result_cut_short"] = "result_cut_short"

    def strike(self, course: Course) -> bool:
        return _harm(course, lambda body: body[: len(body) // 2])


@fault_kind
class ResultErrorRow(Fault):
    """The last row of the result is an error message."""

    strikes_at: ClassVar[Places] = _TOLD
    kind: Literal["result_error_row"] = "result_error_row"
    message: str = Field("internal error while rendering row", min_length=1)

    def strike(self, course: Course) -> bool:
        return _harm_rows(course, lambda rows: [*rows[:-1], Row(id=None, error=self.message)])


@fault_kind
class ResultRecordsMissing(Fault):
    """The result lacks rows that the job counts."""

    strikes_at: ClassVar[Places] = _TOLD
    kind: Literal["result_records_missing"] = "result_records_missing"
    records: int = Field(1, ge=1, description="How many are missing.")

    def strike(self, course: Course) -> bool:
        return _harm_rows(course, lambda rows: rows[: -self.records])


@fault_kind
class ResultFailedItems(Fault):
    """Rows of the result say that they failed, though the job counts none such."""

    strikes_at: ClassVar[Places] = _TOLD
    kind: Literal["result_failed_items"] = "result_failed_items"
    items: int = Field(1, ge=1, description="How many rows, from the first.")

    def strike(self, course: Course) -> bool:
        def fail(rows: list[Row]) -> list[Row]:
            failed = [msgspec.structs.replace(row, error="rejected by a fault") for row in rows[: self.items]]
            return failed + rows[self.items :]

        return _harm_rows(course, fail)


@fault_kind
class ResultWrongType(Fault):
    """The result's Content-Type is not the promised one."""

    strikes_at: ClassVar[Places] = _SERVING
    kind: Literal["result_wrong_type"] = "result_wrong_type"
    content_type: str = Field("text/csv", pattern=r"^[a-z]+/[a-z0-9.+-]+$")

    def strike(self, course: Course) -> bool:
        if not isinstance(course.reply, Served):
            return False
        course.reply_with(msgspec.structs.replace(course.reply, content_type=self.content_type))
        return True


@fault_kind
class ResultBehindRedirect(Fault):
    """The result is somewhere else: a redirect to a store at an origin the credential is not for."""

    strikes_at: ClassVar[Places] = _ASKED
    kind: Literal["result_behind_redirect"] = "result_behind_redirect"

    def strike(self, course: Course) -> bool:
        if not _end_of_job(course):
            return False
        url = course.url(elsewhere=True)
        course.answer_with(Answer(status=302, headers=(("Location", url),), body=b""))
        return True
