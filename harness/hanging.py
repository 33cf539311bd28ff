"""A client that computes without end, noticed by the processor time that passes while nobody else gets a turn.

Where there is no timer for that, and elsewhere than in the main thread, such a client runs until it is interrupted.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

__all__ = ["LONGEST_TURN_S", "Hung", "turns_watched"]

LONGEST_TURN_S: Final = 5.0
"""Seconds of processor time that one callback may take: thousands of times what any has a use for."""


class Hung(KeyboardInterrupt):
    """Raised in the midst of a turn that takes too long. An interrupt: asyncio and ``except Exception`` let it pass."""


@contextmanager
def turns_watched(turn: Callable[[], object]) -> Iterator[None]:
    """Break off, by :class:`Hung`, what computes for too long.

    Args:
        turn: returns something else after each turn.
    """
    timer = getattr(signal, "SIGVTALRM", None)
    in_main_thread = threading.current_thread() is threading.main_thread()
    if timer is None or not in_main_thread or signal.getsignal(timer) is not signal.SIG_DFL:
        yield
        return
    last = turn()

    def look(_number: int, _frame: object) -> None:
        nonlocal last
        now = turn()
        if now == last:
            raise Hung
        last = now

    signal.signal(timer, look)
    signal.setitimer(signal.ITIMER_VIRTUAL, LONGEST_TURN_S, LONGEST_TURN_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(timer, signal.SIG_DFL)
