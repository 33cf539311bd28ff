"""Sees whether the machine stood still while a run was made in real time.

A client's time-outs go on while the harness cannot answer: what comes of that is the machine's doing, and says nothing
of the client.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

__all__ = ["Standstill"]

_TICK_S: Final = 0.05


class Standstill:
    """Watches for how long the event loop stands still at most. A context manager."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.longest_s = 0.0
        self._now = now

    async def __aenter__(self) -> Self:
        self._watching = asyncio.create_task(self._watch())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._watching.cancel()
        with suppress(asyncio.CancelledError):
            await self._watching

    async def _watch(self) -> None:
        while True:
            due = self._now() + _TICK_S
            await asyncio.sleep(_TICK_S)
            self.longest_s = max(self.longest_s, self._now() - due)
