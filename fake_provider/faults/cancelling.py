"""What goes wrong when a job is to be cancelled."""

from typing import ClassVar, Literal

from pydantic import Field

from fake_provider.calls import Cancelled
from fake_provider.contract import CancelEffect
from fake_provider.facts import CommitPoint, Endpoint
from fake_provider.faults.course import Course
from fake_provider.faults.kinds import Fault, Places, fault_kind, places
from fake_provider.job import HELD, Job
from fake_provider.lifecycle import JobState

__all__ = [
    "CancelLost",
    "CancelNeverConfirmed",
    "CancelRefusedAsFinished",
    "CompletesDespiteCancel",
    "PartialEffectsLeft",
]

_TAKING = places(Endpoint.CANCEL, CommitPoint.RECEIVED)


def _cancellable(course: Course) -> Job | None:
    """Return the job if a cancel of it would be something new."""
    job = course.job
    if job is None or job.finished or job.state is JobState.CANCELLING:
        return None
    return None if course.world.contract.cancel.effect is CancelEffect.UNSUPPORTED else job


@fault_kind
class CancelLost(Fault):
    """The cancel is answered as accepted and then lost: the job never hears of it."""

    strikes_at: ClassVar[Places] = _TAKING
    kind: Literal["cancel_lost"] = "cancel_lost"

    def strike(self, course: Course) -> bool:
        job = _cancellable(course)
        if job is None:
            return False
        view = course.world.provider.view(job, course.now)
        course.reply_with(Cancelled(view=view, confirmed=False))
        course.show(state=JobState.CANCELLING)
        return True


@fault_kind
class CompletesDespiteCancel(Fault):
    """The cancel is accepted, and the job runs to its own end all the same."""

    strikes_at: ClassVar[Places] = _TAKING
    kind: Literal["completes_despite_cancel"] = "completes_despite_cancel"

    def strike(self, course: Course) -> bool:
        job = _cancellable(course)
        if job is None:
            return False
        job.stuck = self.kind
        return True


@fault_kind
class CancelRefusedAsFinished(Fault):
    """The job comes to its end just before the cancel, which is answered as the contract says for finished jobs."""

    strikes_at: ClassVar[Places] = _TAKING
    kind: Literal["cancel_refused_as_finished"] = "cancel_refused_as_finished"

    def strike(self, course: Course) -> bool:
        job = course.job
        if job is None or job.finished:
            return False
        course.world.provider.finish_early(job, course.now, cause=self.kind)
        return True


@fault_kind
class CancelNeverConfirmed(Fault):
    """The cancel is accepted, and the job neither ends nor is cancelled until the faults are healed."""

    strikes_at: ClassVar[Places] = _TAKING
    kind: Literal["cancel_never_confirmed"] = HELD

    def strike(self, course: Course) -> bool:
        job = _cancellable(course)
        if job is None:
            return False
        job.stuck = self.kind
        return True


@fault_kind
class PartialEffectsLeft(Fault):
    """The cancelled job leaves something half done, and tells of it."""

    strikes_at: ClassVar[Places] = _TAKING
    kind: Literal["partial_effects_left"] = "partial_effects_left"
    effects: tuple[str, ...] = Field(("half-written export file",), min_length=1, description="What it leaves behind.")

    def strike(self, course: Course) -> bool:
        job = course.job
        if job is None or job.finished:
            return False
        job.partial_effects = self.effects
        return True
