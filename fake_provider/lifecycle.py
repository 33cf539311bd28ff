"""The states of a job at the provider, and every transition between them. Nothing else lives here.

This is the *remote* lifecycle. What a client believes about a job is another lifecycle, kept by the client.
"""

from enum import StrEnum
from types import MappingProxyType
from typing import Final

__all__ = ["TERMINAL", "TRANSITIONS", "IllegalJobTransition", "JobState", "move"]


class JobState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    CANCELLING = "cancelling"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


_S = JobState

TRANSITIONS: Final = MappingProxyType(
    {
        _S.QUEUED: frozenset({_S.RUNNING, _S.CANCELLING, _S.SUCCEEDED, _S.FAILED, _S.CANCELLED}),
        _S.RUNNING: frozenset({_S.CANCELLING, _S.SUCCEEDED, _S.FAILED, _S.CANCELLED}),
        # A cancel that was taken may still lose the race against completion or failure.
        _S.CANCELLING: frozenset({_S.CANCELLED, _S.SUCCEEDED, _S.FAILED}),
        _S.SUCCEEDED: frozenset(),
        _S.FAILED: frozenset(),
        _S.CANCELLED: frozenset(),
    }
)

TERMINAL: Final = frozenset(state for state, successors in TRANSITIONS.items() if not successors)


class IllegalJobTransition(RuntimeError):
    """The provider was asked to move a job along an edge that is not in :data:`TRANSITIONS`."""


def move(before: JobState, after: JobState) -> JobState:
    """Return ``after`` if the table allows it.

    Raises:
        IllegalJobTransition: if ``before -> after`` is not in :data:`TRANSITIONS`.
    """
    if after not in TRANSITIONS[before]:
        raise IllegalJobTransition(f"a job does not go from {before} to {after}")
    return after
