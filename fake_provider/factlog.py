"""What happened in one session, in order: the newest facts in memory, the older ones in a file."""

import asyncio
import os
import tempfile
from array import array
from collections import deque
from collections.abc import AsyncIterator, Callable
from itertools import islice
from typing import IO, Final

import msgspec

from fake_provider.facts import ProviderFact

__all__ = ["KEPT_IN_MEMORY", "FactLog", "Logged"]

KEPT_IN_MEMORY: Final = 10_000
"""Facts of one session kept in memory, some 5 MB; older ones are read back from the file they were spilled to."""

_DECIMALS: Final = 6


class Logged(msgspec.Struct, frozen=True, gc=False):
    """A fact in its place: ``seq`` from 0 without gaps, ``at`` in seconds since the session began."""

    seq: int
    at: float
    fact: ProviderFact


_ENCODER: Final = msgspec.json.Encoder()
_DECODER: Final = msgspec.json.Decoder(Logged)


class FactLog:
    """Append-only."""

    def __init__(self, now: Callable[[], float], *, keep: int = KEPT_IN_MEMORY) -> None:
        """Args:
        now: the session's time of day.
        keep: how many facts stay in memory.
        """
        self._now = now
        self._started_at = now()
        self._recent: deque[Logged] = deque()
        self._keep = keep
        self._length = 0
        self._block = max(1, keep // 10)
        self._blocks = array("Q")  # where each block of spilled facts begins in the file
        self._file: IO[bytes] | None = None
        self._listeners: set[asyncio.Event] = set()
        self._closed = False

    def record(self, fact: ProviderFact) -> None:
        """Take a fact in, at this moment."""
        recent = self._recent
        recent.append(Logged(self._length, round(self._now() - self._started_at, _DECIMALS), fact))
        self._length += 1
        if len(recent) > self._keep:
            self._spill()
        if self._listeners:
            self._tell()

    def _tell(self) -> None:
        for listener in self._listeners:
            listener.set()

    def _spill(self) -> None:
        """Move the oldest facts to the file, as many at once as make it cheap."""
        if self._file is None:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115  closed with the log
        self._blocks.append(self._file.seek(0, os.SEEK_END))
        self._file.write(_ENCODER.encode_lines([self._recent.popleft() for _ in range(self._block)]))

    def __len__(self) -> int:
        return self._length

    def read(self, start: int, limit: int) -> list[Logged]:
        """Return up to ``limit`` facts from number ``start`` on."""
        found: list[Logged] = []
        spilled = self._length - len(self._recent)
        if start < spilled and self._file is not None:
            block, before = divmod(start, self._block)
            self._file.seek(self._blocks[block])
            wanted = islice(self._file, before, before + min(limit, spilled - start))
            found = [_DECODER.decode(line) for line in wanted]
        skipped = max(0, start - spilled)
        left = limit - len(found)
        if left > 0:
            found.extend(self._recent[place] for place in range(skipped, min(len(self._recent), skipped + left)))
        return found

    async def follow(self, start: int) -> AsyncIterator[Logged]:
        """Yield the facts from number ``start`` on, each as it happens, until the log is closed."""
        news = asyncio.Event()
        self._listeners.add(news)
        try:
            while True:
                news.clear()
                found = self.read(start, _AT_ONCE)
                for logged in found:
                    start = logged.seq + 1
                    yield logged
                if found:
                    continue
                if self._closed:
                    return
                await news.wait()
        finally:
            self._listeners.discard(news)

    def close(self) -> None:
        """End every ``follow`` and give the file back; what is in memory can still be read."""
        self._closed = True
        self._tell()
        if self._file is not None:
            self._file.close()
            self._file = None


_AT_ONCE: Final = 1_000
"""Facts read in one go by a follower, so that a long history is never in memory as a whole."""
