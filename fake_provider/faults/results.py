"""What is wrong with a result, though the job succeeded."""

from collections.abc import Callable
from typing import ClassVar, Literal

import msgspec
from pydantic import Field

from fake_provider.calls import Problem, Refused, Served
from fake_provider.facts import CommitPoint, Endpoint
from fake_provider.faults.course import Course
from fake_provider.faults.kinds import Fault, Places, fault_kind, places
from fake_provider.results import ResultBody, Row
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


def _harm(course: Course, change: Callable[[bytes], bytes]) -> None:
    """Change the bytes that are served, or the result's inside the job; what was stated of them stays as it was."""
    reply = course.reply
    if isinstance(reply, Served):
        course.reply_with(msgspec.structs.replace(reply, body=change(reply.body)))
        return
    told = course.the_view.result
    assert told is not None
    assert told.inline is not None
    course.show(result=msgspec.structs.replace(told, inline=change(told.inline)))


def _result(course: Course) -> ResultBody:
    """The result of the job. There must be one."""
    assert course.the_job.result is not None
    return course.the_job.result


class _OfTold(Fault):
    """What strikes where the result is served, or told inside the job."""

    def can_strike(self, course: Course) -> bool:
        view = course.view
        return isinstance(course.reply, Served) or (
            view is not None and view.result is not None and view.result.inline is not None
        )


class _OfRows(_OfTold):
    """What strikes rows of the result. There must be some."""

    def can_strike(self, course: Course) -> bool:
        job = course.job
        has_rows = job is not None and job.result is not None and bool(job.result.rows)
        return has_rows and super().can_strike(course)

    def change(self, rows: list[Row]) -> list[Row]:
        """Return the rows as they are told instead."""
        raise NotImplementedError

    def strike(self, course: Course) -> None:
        rows = self.change(list(_result(course).rows))
        harmed, _ = course.world.dialect.result(course.the_job.operation, rows)
        _harm(course, lambda _: harmed)


class _OfAsked(Fault):
    """What strikes where the result of a job that has one is asked for."""

    def can_strike(self, course: Course) -> bool:
        return course.job is not None and course.job.result is not None


def _other_letter(text: str) -> str:
    """Return a text of the same length that differs in its last character."""
    return text[:-1] + ("0" if text[-1:] != "0" else "1")


@fault_kind
class ResultExpired(_OfAsked):
    """The result, or the link to it, is said to have expired; the job's status holds a new one where links expire."""

    strikes_at: ClassVar[Places] = _ASKED
    kind: Literal["result_expired"] = "result_expired"

    def strike(self, course: Course) -> None:
        course.reply_with(Refused(problem=Problem.LINK_EXPIRED, detail="this link has expired"))


@fault_kind
class ResultConsumed(_OfAsked):
    """The result is gone, as though it had been read before."""

    strikes_at: ClassVar[Places] = _ASKED
    kind: Literal["result_consumed"] = "result_consumed"

    def strike(self, course: Course) -> None:
        course.reply_with(Refused(problem=Problem.RESULT_GONE, detail="this result was read and is kept no longer"))


@fault_kind
class ResultWrongChecksum(_OfTold):
    """A character of the result is not what the stated checksum was made of; length and form are as they should be."""

    strikes_at: ClassVar[Places] = _TOLD
    kind: Literal["result_wrong_checksum"] = "result_wrong_checksum"

    def can_strike(self, course: Course) -> bool:
        job = course.job
        if job is None or job.result is None or not super().can_strike(course):
            return False
        return bool(job.result.rows) or self._under_another_name(course) is not None

    def strike(self, course: Course) -> None:
        harmed = self._under_another_name(course)
        if harmed is None:
            first, *others = _result(course).rows
            renamed = msgspec.structs.replace(first, id=_other_letter(first.id or ""))
            harmed, _ = course.world.dialect.result(course.the_job.operation, (renamed, *others))
        body = harmed
        _harm(course, lambda _: body)

    @staticmethod
    def _under_another_name(course: Course) -> bytes | None:
        """The result as it would be of an operation that differs in a letter; None if it does not say whose it is."""
        true = _result(course)
        harmed, _ = course.world.dialect.result(_other_letter(course.the_job.operation or ""), true.rows)
        return None if len(harmed) != len(true.body) or harmed == true.body else harmed


@fault_kind
class ResultCutShort(_OfTold):
    """The result ends halfway, in an answer whose length says that this is all."""

    strikes_at: ClassVar[Places] = _SERVING
    kind: Literal["result_cut_short"] = "result_cut_short"

    def strike(self, course: Course) -> None:
        _harm(course, lambda body: body[: len(body) // 2])


@fault_kind
class ResultErrorRow(_OfRows):
    """The last row of the result is an error message."""

    strikes_at: ClassVar[Places] = _TOLD
    kind: Literal["result_error_row"] = "result_error_row"
    message: str = Field("internal error while rendering row", min_length=1)

    def change(self, rows: list[Row]) -> list[Row]:
        return [*rows[:-1], Row(id=None, error=self.message)]


@fault_kind
class ResultRecordsMissing(_OfRows):
    """The result lacks rows that the job counts."""

    strikes_at: ClassVar[Places] = _TOLD
    kind: Literal["result_records_missing"] = "result_records_missing"
    records: int = Field(1, ge=1, description="How many are missing.")

    def change(self, rows: list[Row]) -> list[Row]:
        return rows[: -self.records]


@fault_kind
class ResultFailedItems(_OfRows):
    """Rows of the result say that they failed, though the job counts none such."""

    strikes_at: ClassVar[Places] = _TOLD
    kind: Literal["result_failed_items"] = "result_failed_items"
    items: int = Field(1, ge=1, description="How many rows, from the first.")

    def change(self, rows: list[Row]) -> list[Row]:
        failed = [msgspec.structs.replace(row, error="rejected by a fault") for row in rows[: self.items]]
        return failed + rows[self.items :]


@fault_kind
class ResultWrongType(Fault):
    """The result's Content-Type is not the promised one."""

    strikes_at: ClassVar[Places] = _SERVING
    kind: Literal["result_wrong_type"] = "result_wrong_type"
    content_type: str = Field("text/csv", pattern=r"^[a-z]+/[a-z0-9.+-]+$")

    def can_strike(self, course: Course) -> bool:
        return isinstance(course.reply, Served)

    def strike(self, course: Course) -> None:
        assert isinstance(course.reply, Served)
        course.reply_with(msgspec.structs.replace(course.reply, content_type=self.content_type))


@fault_kind
class ResultBehindRedirect(_OfAsked):
    """The result is somewhere else: a redirect to a store at an origin the credential is not for."""

    strikes_at: ClassVar[Places] = _ASKED
    kind: Literal["result_behind_redirect"] = "result_behind_redirect"

    def strike(self, course: Course) -> None:
        url = course.url(elsewhere=True)
        course.answer_with(Answer(status=302, headers=(("Location", url),), body=b""))
