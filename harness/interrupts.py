"""What an interrupt does: it ends what runs in real time in good order, and leaves helpers to the program."""

import asyncio
import signal
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

__all__ = ["interrupts_ignored", "run_interruptibly"]

_T = TypeVar("_T")


@contextmanager
def interrupts_ignored() -> Iterator[None]:
    """Ignore SIGINT, and let programs that are started meanwhile ignore it for good."""
    if threading.current_thread() is not threading.main_thread():  # no signal comes there, and none can be ignored
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def run_interruptibly(coroutine: Coroutine[Any, Any, _T]) -> _T:
    """Do as ``asyncio.run`` does, but let SIGINT cancel the coroutine from the loop, between two callbacks.

    ``asyncio.run`` cancels in the midst of whatever callback the signal comes into. A timer that is just about to wake
    somebody up then finds its future cancelled, and a traceback is logged. A second interrupt raises at once, as it
    does there; a handler of SIGINT that somebody has set stays.

    Raises:
        KeyboardInterrupt: it was interrupted.
    """
    interrupted = False

    async def main() -> _T:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None

        def interrupt() -> None:
            nonlocal interrupted
            interrupted = True
            loop.remove_signal_handler(signal.SIGINT)
            task.cancel()

        # Elsewhere than in the main thread of a Unix system no signal comes.
        with suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(signal.SIGINT, interrupt)
        try:
            return await coroutine
        finally:
            with suppress(NotImplementedError):
                loop.remove_signal_handler(signal.SIGINT)

    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return asyncio.run(coroutine)
    try:
        return asyncio.run(main())
    except asyncio.CancelledError:
        if interrupted:
            raise KeyboardInterrupt from None
        raise
