"""What goes wrong when a job is to be cancelled."""

from typing import ClassVar, Literal

from pydantic import Field

from fake_provider.calls import Cancelled
from fake_provider.contract import CancelEffect
from fake_provider.facts import CommitPoint, Endpoint
from fake_provider.faults.course import Course
from fake_provider.faults.kinds import Fault, Places, fault_kind, places
from fake_provider.job import HELD
from fake_provider.lifecycle import JobState

__all__ = [
    "CancelLost",
    "CancelNeverConfirmed",
    "CancelRefusedAsFinished",
    "CompletesDespiteCancel",
    "PartialEffectsLeft",
]

_TAKING = places(Endpoint.CANCEL, CommitPoint.RECEIVED)


class _OfUnfinished(Fault):
    """What strikes where the job has not come to its end."""

    def can_strike(self, course: Course) -> bool:
        return course.job is not None and not course.job.finished


class _OfCancellable(_OfUnfinished):
    """What strikes where a cancel of the job would be something new."""

    def can_strike(self, course: Course) -> bool:
        if course.world.contract.cancel.effect is CancelEffect.UNSUPPORTED:
            return False
        return super().can_strike(course) and course.the_job.state is not JobState.CANCELLING


@fault_kind
class CancelLost(_OfCancellable):
    """The cancel is answered as accepted and then lost: the job never hears of it."""

    strikes_at: ClassVar[Places] = _TAKING
    kind: Literal["cancel_lost"] = "cancel_lost"

    def strike(self, course: Course) -> None:
        view = course.world.provider.view(course.the_job, course.now)
        course.reply_with(Cancelled(view=view, confirmed=False))
        course.show(state=JobState.CANCELLING)


@fault_kind
class CompletesDespiteCancel(_OfCancellable):
    """The cancel is accepted, and the job runs to its own end all the same."""

    strikes_at: ClassVar[Places] = _TAKING
    kind: Literal["completes_despite_cancel"] = "completes_despite_cancel"

    def strike(self, course: Course) -> None:
        course.the_job.stuck = self.kind


@fault_kind
class CancelRefusedAsFinished(_OfUnfinished):
    """The job comes to its end just before the cancel, which is answered as the contract says for finished jobs."""

    strikes_at: ClassVar[Places] = _TAKING
    kind: Literal["cancel_refused_as_finished"] = "cancel_refused_as_finished"

    def strike(self, course: Course) -> None:
        course.world.provider.finish_early(course.the_job, course.now, cause=self.kind)


@fault_kind
class CancelNeverConfirmed(_OfCancellable):
    """The cancel is accepted, and the job neither ends nor is cancelled until the faults are healed."""

    strikes_at: ClassVar[Places] = _TAKING
    kind: Literal["cancel_never_confirmed"] = HELD

    def strike(self, course: Course) -> None:
        course.the_job.stuck = self.kind


@fault_kind
class PartialEffectsLeft(_OfUnfinished):
    """The cancelled job leaves something half done, and tells of it."""

    strikes_at: ClassVar[Places] = _TAKING
    kind: Literal["partial_effects_left"] = "partial_effects_left"
    effects: tuple[str, ...] = Field(("half-written export file",), min_length=1, description="What it leaves behind.")

    def strike(self, course: Course) -> None:
        course.the_job.partial_effects = self.effects
