"""Ends what a harness leaves behind that was itself ended without a chance to clean up.

Run as a program of its own, outside the harness's process group, it is told on standard input what there is to end:
``+group 123`` and ``-group 123`` for process groups, ``+dir /…`` and ``-dir /…`` for directories, one a line. When its
input ends, which it does however the harness ended, it kills the groups and removes the directories that are left.
It imports little, since each harness that starts a process starts one of these.
"""

import atexit
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Final

__all__ = ["Reaper", "reap", "the_reaper"]

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Reaper:
    """The harness's end of the pipe. Thread-safe, as writes of less than a page are."""

    def __init__(self) -> None:
        # Not a context manager: it lives until the interpreter ends.
        self._process = subprocess.Popen(  # noqa: S603  our own file, run by our own interpreter
            [sys.executable, "-I", "-S", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,
        )

    def watch(self, kind: str, what: object) -> None:
        """End ``what``, a "group" or a "dir", if the harness ends before it is released."""
        self._tell(f"+{kind} {what}\n")

    def release(self, kind: str, what: object) -> None:
        """It was ended in good order."""
        self._tell(f"-{kind} {what}\n")

    def close(self) -> None:
        """Let it end, and take what is left with it."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait()

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None
        # Without a reaper the harness still ends what it started; it is the second line of defence.
        with contextlib.suppress(BrokenPipeError, ValueError):
            self._process.stdin.write(line.encode())


_lock = threading.Lock()
_running: list[Reaper] = []


def the_reaper() -> Reaper:
    """The one reaper of this process, started when it is first asked for."""
    with _lock:
        if not _running:
            _running.append(Reaper())
            atexit.register(_running[0].close)
        return _running[0]


def reap(lines: Iterable[str]) -> None:
    """Follow the lines to their end, then end what is left."""
    left: dict[str, set[str]] = {"group": set(), "dir": set()}
    for line in lines:
        kind, _, what = line[1:].rstrip("\n").partition(" ")
        if line.startswith("+"):
            left[kind].add(what)
        else:
            left[kind].discard(what)
    for group in left["group"]:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(int(group), signal.SIGKILL)
    for directory in left["dir"]:
        shutil.rmtree(Path(directory), ignore_errors=True)


if __name__ == "__main__":
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    reap(sys.stdin)
