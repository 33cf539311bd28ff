"""Processes of a subject, each at the head of a process group of its own, so that one signal reaches all its children.

What a process writes is read as it comes and bounded: a subject that floods its output is ended, one that floods its
log is read on, and the end of the log is kept.
"""

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Self

from harness.stage import SubjectError
from harness.subjects.reaper import the_reaper

__all__ = ["MAX_OUTPUT_BYTES", "Group", "Log", "status_of"]

MAX_OUTPUT_BYTES: Final = 32 << 20
"""What one process may write to standard output: some hundred thousand notes."""

MAX_LOG_BYTES: Final = 64 << 10
"""The end of its standard error that is kept."""

LAST_WORDS: Final = 20
"""Lines of it that are shown."""

_CHUNK: Final = 1 << 16
_CLOSE_S: Final = 3.0
_END_CHECK_S: Final = 0.01


class Log:
    """The end of what was written to a standard error, without the secrets in it.

    Args:
        secrets: what must not be in it.
        on_secret: called each time that one of them is.
    """

    def __init__(self, secrets: Sequence[str] = (), on_secret: Callable[[], object] = lambda: None) -> None:
        self._kept = bytearray()
        self._is_whole = True
        self._secrets = [secret.encode() for secret in secrets]
        self._on_secret = on_secret

    def add(self, data: bytes) -> None:
        """Take in what was read."""
        self._kept += data
        for secret in self._secrets:
            since = max(0, len(self._kept) - len(data) - len(secret))  # it may have come in two pieces
            if self._kept.find(secret, since) >= 0:
                self._kept[since:] = self._kept[since:].replace(secret, b"[secret]")
                self._on_secret()
        if len(self._kept) > MAX_LOG_BYTES:
            del self._kept[:-MAX_LOG_BYTES]
            self._is_whole = False

    @property
    def text(self) -> str:
        """What was kept, saying so if there was more."""
        kept = self._kept.decode("utf-8", "replace")
        return kept if self._is_whole else f"… (only the last {MAX_LOG_BYTES} bytes are kept)\n{kept}"

    @property
    def last_words(self) -> list[str]:
        """The last lines that say something."""
        lines = [line.rstrip()[:500] for line in self._kept.decode("utf-8", "replace").splitlines()]
        return [line for line in lines if line][-LAST_WORDS:]

    @property
    def last_line(self) -> str | None:
        return next(iter(self.last_words[-1:]), None)


class Group:
    """One process and all that it starts."""

    def __init__(self, process: Process, log: Log) -> None:
        self.process = process
        self.log = log
        self._reading = asyncio.create_task(self._read_log())

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        environment: Mapping[str, str],
        *,
        log: Log,
        limit: int = _CHUNK,
        talks: bool = False,
    ) -> Self:
        """Start ``command`` with ``environment`` added to the harness's own.

        Args:
            log: takes what it writes to standard error.
            limit: bytes of the longest line that can be read from its output.
            talks: whether its standard input is a pipe; else there is none.

        Raises:
            SubjectError: the operating system will not run it.
        """
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=PIPE if talks else DEVNULL,
                stdout=PIPE,
                stderr=PIPE,
                start_new_session=True,
                limit=limit,
                env={**os.environ, **environment},
            )
        except OSError as error:
            raise SubjectError(f"cannot start {command[0]!r}: {error.strerror}") from None
        the_reaper().watch("group", process.pid)
        return cls(process, log)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process and all its children."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)

    async def ended(self) -> int:
        """Wait for the end of the process, whatever its children do, and return its code: negative for a signal.

        asyncio's own wait also waits for the pipes, which children may hold open for ever.
        """
        while (code := self.process.returncode) is None:  # noqa: ASYNC110  there is no event for that
            await asyncio.sleep(_END_CHECK_S)
        return code

    async def log_is_read(self, within_s: float) -> None:
        """Wait for the end of its log; its children may hold that open, so not for ever."""
        await asyncio.wait({self._reading}, timeout=within_s)

    async def end(self) -> None:
        """Leave nothing of it behind."""
        self.signal(signal.SIGKILL)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.ended(), _CLOSE_S)
        self._reading.cancel()
        await asyncio.wait({self._reading})
        # The transport holds the pipes; without this they are closed by the collector, with a warning.
        self.process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001
        the_reaper().release("group", self.process.pid)

    async def _read_log(self) -> None:
        assert self.process.stderr is not None
        while data := await self.process.stderr.read(_CHUNK):
            self.log.add(data)


def status_of(code: int) -> str:
    """How a process ended, in words."""
    return f"signal {-code}" if code < 0 else f"exit status {code}"
