"""What the network does wrong."""

from typing import ClassVar, Literal

from pydantic import Field

from fake_provider.facts import CommitPoint, Fate
from fake_provider.faults.course import Course
from fake_provider.faults.kinds import AT_HTTP, Fault, Places, fault_kind, places

__all__ = ["AnswerCut", "AnswerLost", "ConnectionReset", "RequestDuplicated", "RequestLost", "SlowAnswer"]

_P = CommitPoint


@fault_kind
class RequestLost(Fault):
    """The request gets lost, on the way or just behind the door: nothing is done and nothing comes back."""

    strikes_at: ClassVar[Places] = places(AT_HTTP, _P.BEFORE_RECEIPT, _P.RECEIVED)
    kind: Literal["request_lost"] = "request_lost"

    def strike(self, course: Course) -> None:
        course.fate = Fate.LOST


@fault_kind
class AnswerLost(Fault):
    """The provider does what was asked and its answer gets lost: the client waits until its own time-out."""

    strikes_at: ClassVar[Places] = places(AT_HTTP, _P.COMMITTED)
    kind: Literal["answer_lost"] = "answer_lost"

    def strike(self, course: Course) -> None:
        course.fate = Fate.LOST


@fault_kind
class ConnectionReset(Fault):
    """The connection is reset: before the request is received, before or after it is done, or amid the answer."""

    strikes_at: ClassVar[Places] = places(AT_HTTP, _P.BEFORE_RECEIPT, _P.RECEIVED, _P.COMMITTED, _P.ANSWERING)
    kind: Literal["connection_reset"] = "connection_reset"

    def strike(self, course: Course) -> None:
        course.fate = Fate.RESET


@fault_kind
class AnswerCut(Fault):
    """The answer announces its full length and ends halfway."""

    strikes_at: ClassVar[Places] = places(AT_HTTP, _P.ANSWERING)
    kind: Literal["answer_cut"] = "answer_cut"

    def strike(self, course: Course) -> None:
        course.fate = Fate.CUT


@fault_kind
class SlowAnswer(Fault):
    """The exchange pauses: before or after the request is carried out, or amid the answer."""

    strikes_at: ClassVar[Places] = places(AT_HTTP, _P.RECEIVED, _P.COMMITTED, _P.ANSWERING)
    kind: Literal["slow_answer"] = "slow_answer"
    seconds: float = Field(5, gt=0, description="How long it pauses.")

    def strike(self, course: Course) -> None:
        course.delay_s += self.seconds


@fault_kind
class RequestDuplicated(Fault):
    """The network delivers the request twice: a copy at this point, whose answer goes nowhere."""

    strikes_at: ClassVar[Places] = places(AT_HTTP, _P.BEFORE_RECEIPT, _P.RECEIVED, _P.COMMITTED, _P.DELIVERED)
    kind: Literal["request_duplicated"] = "request_duplicated"

    def strike(self, course: Course) -> None:
        course.copies += 1
