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


class _OfDelivery(Fault):
    """What strikes a delivery. There is none any more where it is held back already."""

    def can_strike(self, course: Course) -> bool:
        return course.pending is not None


class _OfJob(Fault):
    """What tells the client of the job that an exchange or a delivery is about, where the contract has webhooks."""

    def can_strike(self, course: Course) -> bool:
        return course.job is not None and course.world.mail.outbox.offered


@fault_kind
class WebhookLost(_OfDelivery):
    """The delivery never arrives. The provider notices, and tries again as its schedule says."""

    strikes_at: ClassVar[Places] = _LEAVING
    kind: Literal["webhook_lost"] = "webhook_lost"
    for_good: bool = Field(False, description="The provider believes that it arrived, and does not try again.")

    def strike(self, course: Course) -> None:
        course.delivery.lost = True
        if self.for_good:
            course.delivery.retried = False


@fault_kind
class WebhookLate(_OfDelivery):
    """The delivery is held up on its way; its timestamp is that of the sending."""

    strikes_at: ClassVar[Places] = _LEAVING
    kind: Literal["webhook_late"] = "webhook_late"
    seconds: float = Field(5, gt=0, description="How long it is held up.")

    def strike(self, course: Course) -> None:
        course.delay_s += self.seconds


@fault_kind
class WebhookTwice(_OfDelivery):
    """The same event is delivered once more, right after it was taken."""

    strikes_at: ClassVar[Places] = _DELIVERED
    kind: Literal["webhook_twice"] = "webhook_twice"

    def strike(self, course: Course) -> None:
        again = Pending(event=course.delivery.event, attempt=course.delivery.attempt, retried=False, exempt=True)
        course.world.mail.outbox.add(again, course.now)


@fault_kind
class WebhookOutOfOrder(_OfDelivery):
    """The delivery is overtaken: it goes out after the next one for the same job, or when the faults are healed."""

    strikes_at: ClassVar[Places] = _LEAVING
    takes_effect_later: ClassVar[bool] = True  # when it was overtaken
    kind: Literal["webhook_out_of_order"] = "webhook_out_of_order"

    def strike(self, course: Course) -> None:
        course.world.mail.hold_until_overtaken(course.delivery, course.fault)
        course.pending = None


@fault_kind
class WebhookTooOld(_OfDelivery):
    """The delivery carries a valid signature over a timestamp too long ago to be accepted."""

    strikes_at: ClassVar[Places] = _LEAVING
    kind: Literal["webhook_too_old"] = "webhook_too_old"
    seconds: float = Field(_TOLERANCE_S + 60, gt=_TOLERANCE_S, description="How long ago.")

    def strike(self, course: Course) -> None:
        course.delivery.skew_s = -self.seconds


@fault_kind
class WebhookTooNew(_OfDelivery):
    """The delivery carries a valid signature over a timestamp too far ahead to be accepted."""

    strikes_at: ClassVar[Places] = _LEAVING
    kind: Literal["webhook_too_new"] = "webhook_too_new"
    seconds: float = Field(_TOLERANCE_S + 60, gt=_TOLERANCE_S, description="How far ahead.")

    def strike(self, course: Course) -> None:
        course.delivery.skew_s = self.seconds


@fault_kind
class WebhookSecretRotated(_OfDelivery):
    """The delivery is signed with a newer secret first and the known one second, as while secrets are changed."""

    strikes_at: ClassVar[Places] = _LEAVING
    kind: Literal["webhook_secret_rotated"] = "webhook_secret_rotated"

    def strike(self, course: Course) -> None:
        course.delivery.rotated = True


def _send(course: Course, event: Event, *, signed: bool = True) -> None:
    """Send an extra event, once."""
    course.world.mail.outbox.add(Pending(event=event, retried=False, signed=signed, exempt=True), course.now)


@fault_kind
class WebhookForged(_OfJob):
    """A stranger says that the job has succeeded, signed with a secret the client never got, or not at all."""

    strikes_at: ClassVar[Places] = _BESIDE
    kind: Literal["webhook_forged"] = "webhook_forged"
    signature: Literal["wrong", "none"] = Field("wrong", description="Whether there is one at all.")

    def strike(self, course: Course) -> None:
        view = course.world.provider.view(course.the_job, course.now)
        claimed = msgspec.structs.replace(view, state=JobState.SUCCEEDED, progress=100)
        event = course.world.mail.event(claimed, course.now, genuine=False)
        _send(course, event, signed=self.signature == "wrong")


@fault_kind
class WebhookPreempted(_OfDelivery):
    """A stranger who knows the delivery's event id is faster: his forgery bears it and arrives first."""

    strikes_at: ClassVar[Places] = _LEAVING
    kind: Literal["webhook_preempted"] = "webhook_preempted"
    seconds: float = Field(0.1, gt=0, description="How long the delivery is behind the forgery.")

    def strike(self, course: Course) -> None:
        course.delay_s += self.seconds
        _send(course, msgspec.structs.replace(course.delivery.event, genuine=False))


@fault_kind
class WebhookForAnotherJob(_OfJob):
    """A genuine event tells of the success of a job that is somebody else's."""

    strikes_at: ClassVar[Places] = _BESIDE
    kind: Literal["webhook_for_another_job"] = "webhook_for_another_job"

    def strike(self, course: Course) -> None:
        view = course.world.provider.view(course.the_job, course.now)
        other = msgspec.structs.replace(
            view,
            id=course.world.provider.jobs.foreign_id(),
            operation="somebody-elses",
            state=JobState.SUCCEEDED,
            progress=100,
        )
        _send(course, course.world.mail.event(other, course.now))


@fault_kind
class WebhookUnknownType(_OfJob):
    """A genuine event about the job is of a type that is in no documentation."""

    strikes_at: ClassVar[Places] = _BESIDE
    kind: Literal["webhook_unknown_type"] = "webhook_unknown_type"
    type: str = Field("job.annotated", pattern=r"^[a-z_]+(\.[a-z_]+)+$")

    def strike(self, course: Course) -> None:
        view = course.world.provider.view(course.the_job, course.now)
        _send(course, course.world.mail.event(view, course.now, kind=self.type))


@fault_kind
class WebhookReplayed(_OfDelivery):
    """Somebody who has recorded a delivery sends it again later, byte for byte."""

    strikes_at: ClassVar[Places] = _DELIVERED
    kind: Literal["webhook_replayed"] = "webhook_replayed"
    after_s: float = Field(172_800, gt=0, description="How much later; two days unless said otherwise.")

    def can_strike(self, course: Course) -> bool:
        return super().can_strike(course) and course.delivery.frozen is not None

    def strike(self, course: Course) -> None:
        again = Pending(
            event=course.delivery.event,
            attempt=course.delivery.attempt,
            frozen=course.delivery.frozen,
            retried=False,
            exempt=True,
        )
        course.world.mail.outbox.add(again, course.now + self.after_s)


@fault_kind
class WebhookBeforeAnswer(_OfJob):
    """The job ends at once, and its event is delivered before the create's own answer."""

    strikes_at: ClassVar[Places] = places(_E.CREATE, _P.COMMITTED)
    kind: Literal["webhook_before_answer"] = "webhook_before_answer"
    seconds: float = Field(0.1, gt=0, description="How long the answer is behind the event.")

    def can_strike(self, course: Course) -> bool:
        return super().can_strike(course) and not course.the_job.finished

    def strike(self, course: Course) -> None:
        course.world.provider.finish_early(course.the_job, course.now, cause=self.kind)
        course.delay_s += self.seconds
