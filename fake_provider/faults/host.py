"""What the client's own host does wrong: it dies, it freezes, its clock is wrong, its disk refuses."""

from types import MappingProxyType
from typing import ClassVar, Literal

from pydantic import Field

from fake_provider.facts import CommitPoint, Endpoint
from fake_provider.faults.course import Course
from fake_provider.faults.kinds import AT_HTTP, AheadS, Fault, Places, fault_kind, places

__all__ = ["ClockSkewed", "Kill", "Stop", "WriteRefused"]

_P = CommitPoint
_EVERYWHERE = MappingProxyType(
    {
        **places(AT_HTTP, *_P),
        **places(Endpoint.STORE, _P.RECEIVED, _P.COMMITTED),
        **places(Endpoint.WEBHOOK, _P.DELIVERED),
    }
)


@fault_kind
class Kill(Fault):
    """The worker is killed (SIGKILL) at this point. Before receipt its request dies too; later on it is carried out."""

    strikes_at: ClassVar[Places] = _EVERYWHERE
    kind: Literal["kill"] = "kill"

    def strike(self, course: Course) -> None:
        course.killed = True


@fault_kind
class Stop(Fault):
    """The worker is frozen (SIGSTOP) at this point, for a time or until it is resumed; its timers run on."""

    strikes_at: ClassVar[Places] = _EVERYWHERE
    kind: Literal["stop"] = "stop"
    for_s: float | None = Field(None, gt=0, description="Seconds until it is resumed; left out: until a step does.")

    def strike(self, course: Course) -> None:
        course.stops.append(self.for_s)


@fault_kind
class ClockSkewed(Fault):
    """The wall clock of the worker's host is wrong from this point on, until healed; its monotonic clock is not."""

    strikes_at: ClassVar[Places] = _EVERYWHERE
    kind: Literal["clock_skewed"] = "clock_skewed"
    ahead_s: AheadS = 3600

    def strike(self, course: Course) -> None:
        course.clock_ahead_s = self.ahead_s


@fault_kind
class WriteRefused(Fault):
    """The client's durable store refuses a write."""

    strikes_at: ClassVar[Places] = places(Endpoint.STORE, _P.RECEIVED)
    kind: Literal["write_refused"] = "write_refused"
    reason: str = Field("disk full", min_length=1, description="What the store says.")

    def strike(self, course: Course) -> None:
        course.refusal = self.reason
