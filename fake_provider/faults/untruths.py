"""What a provider tells that is not so, or does that it promised not to do."""

from typing import ClassVar, Literal
from urllib.parse import urlsplit

import msgspec
from pydantic import Field

from fake_provider.calls import Create, Created, Found, Listed, Problem, Refused
from fake_provider.facts import CommitPoint, Endpoint
from fake_provider.faults.course import Course
from fake_provider.faults.kinds import Fault, Places, fault_kind, places
from fake_provider.lifecycle import JobState
from fake_provider.wire import Answer

__all__ = [
    "AnotherJobShown",
    "ChangedBodyAccepted",
    "JobIdReused",
    "NotFoundAfterAccept",
    "OtherJobForToken",
    "Progress100WhileRunning",
    "ProviderClockSkewed",
    "RelativeStatusUrl",
    "RetryRefused",
    "StaleRead",
    "StateBackwards",
    "StatusUrlMoved",
    "TerminalShownOnce",
    "TokenForgotten",
    "UnknownState",
]

_E, _P = Endpoint, CommitPoint
_STATUS = places(_E.STATUS, _P.COMMITTED)
_CREATED = places(_E.CREATE, _P.COMMITTED)
_CREATING = places(_E.CREATE, _P.RECEIVED)


class _OfView(Fault):
    """What strikes where the answer tells of a job."""

    def can_strike(self, course: Course) -> bool:
        return course.view is not None


class _OfJobTold(_OfView):
    """What strikes where that job is known to the provider."""

    def can_strike(self, course: Course) -> bool:
        return course.job is not None and super().can_strike(course)


@fault_kind
class NotFoundAfterAccept(Fault):
    """A status read of a job that exists is answered 404, as by a replica that has not heard of it."""

    strikes_at: ClassVar[Places] = _STATUS
    kind: Literal["not_found_after_accept"] = "not_found_after_accept"

    def can_strike(self, course: Course) -> bool:
        return isinstance(course.reply, Found)

    def strike(self, course: Course) -> None:
        job = course.the_view.id
        course.reply_with(Refused(problem=Problem.NOT_FOUND, detail=f"there is no job {job}", job=job))


@fault_kind
class StateBackwards(_OfJobTold):
    """A status read shows an earlier state: running for a finished job, queued for a running one."""

    strikes_at: ClassVar[Places] = _STATUS
    kind: Literal["state_backwards"] = "state_backwards"

    def can_strike(self, course: Course) -> bool:
        return super().can_strike(course) and course.the_job.state is not JobState.QUEUED

    def strike(self, course: Course) -> None:
        earlier = JobState.RUNNING if course.the_job.finished else JobState.QUEUED
        course.show(state=earlier, progress=None, result=None, error=None, partial_effects=())


@fault_kind
class UnknownState(_OfView):
    """A status read shows a state that is in no documentation."""

    strikes_at: ClassVar[Places] = _STATUS
    kind: Literal["unknown_state"] = "unknown_state"
    word: str = Field("on_hold", pattern=r"^[A-Za-z][A-Za-z0-9_-]*$", description="The state it shows.")

    def can_strike(self, course: Course) -> bool:
        known = course.world.dialect.words(course.world.contract)
        return super().can_strike(course) and self.word not in {*JobState, *known}

    def strike(self, course: Course) -> None:
        course.show(state=self.word, result=None, error=None)


@fault_kind
class TerminalShownOnce(_OfJobTold):
    """The first read that shows the job's end is the last: later ones, until healed, find no such job."""

    strikes_at: ClassVar[Places] = _STATUS
    kind: Literal["terminal_shown_once"] = "terminal_shown_once"

    def can_strike(self, course: Course) -> bool:
        return super().can_strike(course) and course.the_job.finished

    def strike(self, course: Course) -> None:
        course.the_job.hidden = True


@fault_kind
class Progress100WhileRunning(_OfJobTold):
    """A status read of an unfinished job shows a progress of 100 per cent."""

    strikes_at: ClassVar[Places] = _STATUS
    kind: Literal["progress_100_while_running"] = "progress_100_while_running"

    def can_strike(self, course: Course) -> bool:
        return super().can_strike(course) and not course.the_job.finished

    def strike(self, course: Course) -> None:
        course.show(progress=100)


@fault_kind
class StaleRead(_OfJobTold):
    """A replica answers: the job as it was when created, or a look-up that does not know it yet."""

    strikes_at: ClassVar[Places] = places((_E.STATUS, _E.LOOKUP), _P.COMMITTED)
    kind: Literal["stale_read"] = "stale_read"

    def can_strike(self, course: Course) -> bool:
        if isinstance(course.reply, Listed):
            return bool(course.reply.views)
        return super().can_strike(course) and course.the_job.state is not JobState.QUEUED

    def strike(self, course: Course) -> None:
        if isinstance(course.reply, Listed):
            course.reply_with(Listed(views=()))
            return
        course.show(
            state=JobState.QUEUED,
            progress=0 if course.the_view.progress is not None else None,
            updated_at=course.the_job.created_at,
            result=None,
            error=None,
            partial_effects=(),
        )


@fault_kind
class AnotherJobShown(_OfJobTold):
    """A status read is answered with somebody else's job, which has succeeded, as by a cache that mixes two up."""

    strikes_at: ClassVar[Places] = _STATUS
    kind: Literal["another_job_shown"] = "another_job_shown"

    def strike(self, course: Course) -> None:
        view = course.the_view
        stem, last = view.id[:-1], view.id[-1]
        course.show(
            id=f"{stem}{'1' if last == '0' else '0'}",
            operation="somebody-elses",
            state=JobState.SUCCEEDED,
            progress=100 if view.progress is not None else None,
            result=None,
            error=None,
            partial_effects=(),
        )


@fault_kind
class ProviderClockSkewed(_OfView):
    """The times in the answer are those of a clock that is wrong, and so is its Date."""

    strikes_at: ClassVar[Places] = places((_E.CREATE, _E.STATUS), _P.COMMITTED)
    kind: Literal["provider_clock_skewed"] = "provider_clock_skewed"
    seconds: float = Field(3600, description="How far the clock is ahead; negative: behind.")

    def strike(self, course: Course) -> None:
        view = course.the_view
        course.show(created_at=view.created_at + self.seconds, updated_at=view.updated_at + self.seconds)


@fault_kind
class OtherJobForToken(Fault):
    """A replay of a create names another id than the first answer did. Both ids are answered for."""

    strikes_at: ClassVar[Places] = _CREATED
    kind: Literal["other_job_for_token"] = "other_job_for_token"

    def can_strike(self, course: Course) -> bool:
        return course.job is not None and isinstance(course.reply, Created) and course.reply.replayed

    def strike(self, course: Course) -> None:
        course.show(id=course.world.provider.jobs.alias(course.the_job))


@fault_kind
class TokenForgotten(Fault):
    """The idempotency key of this create is forgotten as soon as the job exists: the same key creates anew."""

    strikes_at: ClassVar[Places] = _CREATED
    kind: Literal["token_forgotten"] = "token_forgotten"

    def can_strike(self, course: Course) -> bool:
        return isinstance(course.call, Create) and course.world.provider.keys.remembers(course.call)

    def strike(self, course: Course) -> None:
        assert isinstance(course.call, Create)
        course.world.provider.keys.forget(course.call)


@fault_kind
class ChangedBodyAccepted(Fault):
    """A known key comes with another body and silently gets the first answer."""

    strikes_at: ClassVar[Places] = _CREATING
    kind: Literal["changed_body_accepted"] = "changed_body_accepted"

    def can_strike(self, course: Course) -> bool:
        ticket = course.ticket
        if ticket is None or ticket.key is None or ticket.refused is None:
            return False
        return ticket.refused.problem is Problem.KEY_REUSED and ticket.key.view is not None

    def strike(self, course: Course) -> None:
        assert course.ticket is not None
        course.ticket.refused = None


@fault_kind
class RetryRefused(Fault):
    """A legitimate retry, same key and same body, is refused as a key used with another request."""

    strikes_at: ClassVar[Places] = _CREATING
    kind: Literal["retry_refused"] = "retry_refused"

    def can_strike(self, course: Course) -> bool:
        ticket = course.ticket
        return ticket is not None and ticket.refused is None and ticket.key is not None and ticket.key.view is not None

    def strike(self, course: Course) -> None:
        detail = "this idempotency key was used with another request"
        course.reply_with(Refused(problem=Problem.KEY_REUSED, detail=detail))


@fault_kind
class JobIdReused(Fault):
    """The new job gets the id of the job created last, as after a restart that lost the counter."""

    strikes_at: ClassVar[Places] = _CREATING
    kind: Literal["job_id_reused"] = "job_id_reused"

    def can_strike(self, course: Course) -> bool:
        ticket = course.ticket
        if ticket is None or ticket.refused is not None or (ticket.key is not None and ticket.key.view is not None):
            return False
        return course.world.provider.jobs.any_created

    def strike(self, course: Course) -> None:
        course.world.provider.jobs.reuse_last_id()


@fault_kind
class RelativeStatusUrl(_OfView):
    """The create's Location is relative, as RFC 9110 allows."""

    strikes_at: ClassVar[Places] = _CREATED
    kind: Literal["relative_status_url"] = "relative_status_url"

    def strike(self, course: Course) -> None:
        course.alter(_relative_location)


def _relative_location(answer: Answer) -> Answer:
    location = answer.header("Location")
    return answer.with_header("Location", urlsplit(location).path) if location else answer


@fault_kind
class StatusUrlMoved(_OfView):
    """The status URL has moved: a permanent redirect to another URL of the same origin, which works."""

    strikes_at: ClassVar[Places] = _STATUS
    kind: Literal["status_url_moved"] = "status_url_moved"

    def strike(self, course: Course) -> None:
        view = course.the_view
        answer = Answer(status=308, headers=(("Location", course.url() + "?moved=1"),), body=b"", job=view.id)
        course.answer_with(msgspec.structs.replace(answer, operation=view.operation))
