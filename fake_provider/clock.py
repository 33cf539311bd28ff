"""Time as an argument: the clock everything here is handed, and two of its makers.

Nothing in this project asks the operating system for the time except :class:`SystemClock`.
"""

import time
from typing import Protocol

__all__ = ["Clock", "ManualClock", "SystemClock"]


class Clock(Protocol):
    """Tells the time of day, as seconds since the Unix epoch."""

    def now(self) -> float:
        """Return the time of day in seconds since 1970-01-01T00:00:00Z."""
        ...


class SystemClock:
    """The machine's own time of day, made monotonic: it never runs backwards within a process."""

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()

    def now(self) -> float:
        return self._offset + time.monotonic()


class ManualClock:
    """A clock that moves only when told to; for tests and for the control API."""

    def __init__(self, now: float = 0.0) -> None:
        self._now = now

    def now(self) -> float:
        return self._now

    def advance(self, seconds: float) -> None:
        """Move forward by ``seconds``; a negative amount is refused with ``ValueError``."""
        if seconds < 0:
            raise ValueError(f"a clock does not run backwards: asked to advance by {seconds} s")
        self._now += seconds
