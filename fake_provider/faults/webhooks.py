"""What goes wrong with webhooks: on their way, in their signatures, in what they say."""

from typing import ClassVar, Literal

import msgspec
from pydantic import Field

from fake_provider.facts import CommitPoint, Endpoint
from fake_provider.faults.course import Course
from fake_provider.faults.kinds import Fault, Places, fault_kind, places
from fake_provider.lifecycle import JobState
from fake_provider.webhooks import Event, Pending

__all__ = [
    "WebhookBeforeAnswer",
    "WebhookForAnotherJob",
    "WebhookForged",
    "WebhookLate",
    "WebhookLost",
    "WebhookOutOfOrder",
    "WebhookPreempted",
    "WebhookReplayed",
    "WebhookSecretRotated",
    "WebhookTooNew",
    "WebhookTooOld",
    "WebhookTwice",
    "WebhookUnknownType",
]

_E, _P = Endpoint, CommitPoint
_LEAVING = places(_E.WEBHOOK, _P.BEFORE_RECEIPT)
_DELIVERED = places(_E.WEBHOOK, _P.DELIVERED)
_BESIDE = places((_E.CREATE, _E.STATUS, _E.CANCEL, _E.RESULT, _E.WEBHOOK), _P.DELIVERED)
"""An extra event comes just after something else was delivered."""

_TOLERANCE_S = 300  # Standard Webhooks: five minutes on both sides of now


@fault_kind
class WebhookLost(Fault):
    """The delivery never arrives. The provider notices, and tries again as its schedule says."""

    strikes_at: ClassVar[Places] = _LEAVING
    kind: Literal["webhook_lost"] = "webhook_lost"
    for_good: bool = Field(False, description="The provider believes that it arrived, and does not try again.")

    def strike(self, course: Course) -> bool:
        if course.pending is None:
            return False
        course.pending.lost = True
        if self.for_good:
            course.pending.retried = False
        return True


@fault_kind
class WebhookLate(Fault):
    """The delivery is held up on its way; its timestamp is that of the sending."""

    strikes_at: ClassVar[Places] = _LEAVING
    kind: Literal["webhook_late"] = "webhook_late"
    seconds: float = Field(5, gt=0, description="How long it is held up.")

    def strike(self, course: Course) -> bool:
        course.delay_s += self.seconds
        return True


@fault_kind
class WebhookTwice(Fault):
    """The same event is delivered once more, right after it was taken."""

    strikes_at: ClassVar[Places] = _DELIVERED
    kind: Literal["webhook_twice"] = "webhook_twice"

    def strike(self, course: Course) -> bool:
        if course.pending is None:
            return False
        again = Pending(event=course.pending.event, attempt=course.pending.attempt, retried=False, exempt=True)
        course.world.mail.outbox.add(again, course.now)
        return True


@fault_kind
class WebhookOutOfOrder(Fault):
    """The delivery is overtaken: it goes out after the next one for the same job, or when the faults are healed."""

    strikes_at: ClassVar[Places] = _LEAVING
    kind: Literal["webhook_out_of_order"] = "webhook_out_of_order"

    def strike(self, course: Course) -> bool:
        if course.pending is not None:
            course.world.mail.hold_until_overtaken(course.pending, course.fault)
            course.pending = None
        return False  # it has struck when it was overtaken


@fault_kind
class WebhookTooOld(Fault):
    """The delivery carries a valid signature over a timestamp too long ago to be accepted."""

    strikes_at: ClassVar[Places] = _LEAVING
    kind: Literal["webhook_too_old"] = "webhook_too_old"
    seconds: float = Field(_TOLERANCE_S + 60, gt=_TOLERANCE_S, description="How long ago.")

    def strike(self, course: Course) -> bool:
        if course.pending is None:
            return False
        course.pending.skew_s = -self.seconds
        return True


@fault_kind
class WebhookTooNew(Fault):
    """The delivery carries a valid signature over a timestamp too far ahead to be accepted."""

    strikes_at: ClassVar[Places] = _LEAVING
    kind: Literal["webhook_too_new"] = "webhook_too_new"
    seconds: float = Field(_TOLERANCE_S + 60, gt=_TOLERANCE_S, description="How far ahead.")

    def strike(self, course: Course) -> bool:
        if course.pending is None:
            return False
        course.pending.skew_s = self.seconds
        return True


@fault_kind
class WebhookSecretRotated(Fault):
    """The delivery is signed with a newer secret first and the known one second, as while secrets are changed."""

    strikes_at: ClassVar[Places] = _LEAVING
    kind: Literal["webhook_secret_rotated"] = "webhook_secret_rotated"

    def strike(self, course: Course) -> bool:
        if course.pending is None:
            return False
        course.pending.rotated = True
        return True


def _send(course: Course, event: Event, *, signed: bool = True) -> bool:
    """Send an extra event, once."""
    course.world.mail.outbox.add(Pending(event=event, retried=False, signed=signed, exempt=True), course.now)
    return True


@fault_kind
class WebhookForged(Fault):
    """A stranger says that the job has succeeded, signed with a secret the client never got, or not at all."""

    strikes_at: ClassVar[Places] = _BESIDE
    kind: Literal["webhook_forged"] = "webhook_forged"
    signature: Literal["wrong", "none"] = Field("wrong", description="Whether there is one at all.")

    def strike(self, course: Course) -> bool:
        if course.job is None or not course.world.mail.outbox.offered:
            return False
        view = course.world.provider.view(course.job, course.now)
        claimed = msgspec.structs.replace(view, state=JobState.SUCCEEDED, progress=100)
        event = course.world.mail.event(claimed, course.now, genuine=False)
        return _send(course, event, signed=self.signature == "wrong")


@fault_kind
class WebhookPreempted(Fault):
    """A stranger who knows the delivery's event id is faster: his forgery bears it and arrives first."""

    strikes_at: ClassVar[Places] = _LEAVING
    kind: Literal["webhook_preempted"] = "webhook_preempted"
    seconds: float = Field(0.1, gt=0, description="How long the delivery is behind the forgery.")

    def strike(self, course: Course) -> bool:
        if course.pending is None:
            return False
        course.delay_s += self.seconds
        return _send(course, msgspec.structs.replace(course.pending.event, genuine=False))


@fault_kind
class WebhookForAnotherJob(Fault):
    """A genuine event tells of the success of a job that is somebody else's."""

    strikes_at: ClassVar[Places] = _BESIDE
    kind: Literal["webhook_for_another_job"] = "webhook_for_another_job"

    def strike(self, course: Course) -> bool:
        if course.job is None or not course.world.mail.outbox.offered:
            return False
        view = course.world.provider.view(course.job, course.now)
        other = msgspec.structs.replace(
            view,
            id=course.world.provider.jobs.foreign_id(),
            operation="somebody-elses",
            state=JobState.SUCCEEDED,
            progress=100,
        )
        return _send(course, course.world.mail.event(other, course.now))


@fault_kind
class WebhookUnknownType(Fault):
    """A genuine event about the job is of a type that is in no documentation."""

    strikes_at: ClassVar[Places] = _BESIDE
    kind: Literal["webhook_unknown_type"] = "webhook_unknown_type"
    type: str = Field("job.annotated", pattern=r"^[a-z_]+(\.[a-z_]+)+$")

    def strike(self, course: Course) -> bool:
        if course.job is None or not course.world.mail.outbox.offered:
            return False
        view = course.world.provider.view(course.job, course.now)
        return _send(course, course.world.mail.event(view, course.now, kind=self.type))


@fault_kind
class WebhookReplayed(Fault):
    """Somebody who has recorded a delivery sends it again later, byte for byte."""

    strikes_at: ClassVar[Places] = _DELIVERED
    kind: Literal["webhook_replayed"] = "webhook_replayed"
    after_s: float = Field(172_800, gt=0, description="How much later; two days unless said otherwise.")

    def strike(self, course: Course) -> bool:
        if course.pending is None or course.pending.frozen is None:
            return False
        again = Pending(
            event=course.pending.event,
            attempt=course.pending.attempt,
            frozen=course.pending.frozen,
            retried=False,
            exempt=True,
        )
        course.world.mail.outbox.add(again, course.now + self.after_s)
        return True


@fault_kind
class WebhookBeforeAnswer(Fault):
    """The job ends at once, and its event is delivered before the create's own answer."""

    strikes_at: ClassVar[Places] = places(_E.CREATE, _P.COMMITTED)
    kind: Literal["webhook_before_answer"] = "webhook_before_answer"
    seconds: float = Field(0.1, gt=0, description="How long the answer is behind the event.")

    def strike(self, course: Course) -> bool:
        if course.job is None or course.job.finished or not course.world.mail.outbox.offered:
            return False
        course.world.provider.finish_early(course.job, course.now, cause=self.kind)
        course.delay_s += self.seconds
        return True
