"""What an exchange asks of its shell: wait, send, do something to the client's host. Data, brought about elsewhere."""

from collections.abc import Generator, Iterator

import msgspec

from fake_provider.facts import Fate
from fake_provider.faults.course import Course
from fake_provider.keys import Gate
from fake_provider.wire import Answer, Request

__all__ = [
    "Begin",
    "Copy",
    "Effect",
    "Exchange",
    "HostEffect",
    "KillHost",
    "Send",
    "SetClock",
    "StopHost",
    "StoreFate",
    "Wait",
    "WaitFor",
    "host_effects",
]


class Wait(msgspec.Struct, frozen=True):
    """Go on after so many seconds."""

    seconds: float


class WaitFor(msgspec.Struct, frozen=True):
    """Go on when the gate is open."""

    gate: Gate


class KillHost(msgspec.Struct, frozen=True):
    """Kill the worker, now."""

    worker: str


class StopHost(msgspec.Struct, frozen=True):
    """Freeze the worker, now, for so many seconds or (None) until someone resumes it."""

    worker: str
    for_s: float | None


class SetClock(msgspec.Struct, frozen=True):
    """Set the wall clock of the worker's host so many seconds ahead of true time, now; negative: behind."""

    worker: str
    ahead_s: float


class Copy(msgspec.Struct, frozen=True):
    """Deliver the request once more, as an exchange whose answer goes nowhere."""

    request: Request
    worker: str
    copy_of: int


class Begin(msgspec.Struct, frozen=True):
    """Send the head of the answer and half of its body, and keep the rest back: something strikes in between."""

    answer: Answer


class Send(msgspec.Struct):
    """Let the answer end in that manner. A shell that finds its client gone sets ``fate`` to say so.

    ``since``: by the engine's clock, when the shell was given it. The client may have the answer from then on.
    """

    answer: Answer | None
    fate: Fate
    since: float | None = None


HostEffect = KillHost | StopHost | SetClock
Effect = Wait | WaitFor | KillHost | StopHost | SetClock | Copy | Begin | Send
Exchange = Generator[Effect, float, None]


class StoreFate(msgspec.Struct, frozen=True):
    """What strikes at a client's durable write: effects on its host, and why the write is refused, if it is."""

    host: tuple[HostEffect, ...] = ()
    refuse: str | None = None


def host_effects(course: Course, worker: str) -> Iterator[HostEffect]:
    """Yield what strikes a worker's host. One that dies is not frozen as well; its clock runs on."""
    if course.clock_ahead_s is not None:
        yield SetClock(worker, course.clock_ahead_s)
    if course.killed:
        yield KillHost(worker)
        return
    for for_s in course.stops:
        yield StopHost(worker, for_s)
