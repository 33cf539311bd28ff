"""An asyncio event loop with virtual time, and hosts in it that can be killed, frozen and thawed.

When every task waits, the loop jumps to the next timer: an hour costs nothing. Real input and output has no place
here, since it would take real time while virtual time stands still: code of a simulated host that tries it is refused
with :class:`RealIO`.

A host is a set of callbacks that share a context variable. Killing it means that none of them ever runs again, so
neither an ``except`` nor a ``finally`` of its code does, just as with SIGKILL. Freezing it holds them back until it
is thawed, while its timers run on, just as with SIGSTOP and SIGCONT.
"""

import asyncio
import contextlib
import math
import sys
import time
from asyncio import Handle, TimerHandle
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from heapq import heappop, heappush
from itertools import count
from typing import Any, Final, NoReturn, ParamSpec, SupportsIndex, TypeVar, TypeVarTuple, Unpack

from harness.hanging import LONGEST_TURN_S, Hung, turns_watched

__all__ = [
    "EPOCH",
    "TICK_S",
    "Deadlock",
    "Livelock",
    "RealIO",
    "SimulatedClock",
    "SimulatedHost",
    "SimulationError",
    "SimulationLoop",
]

EPOCH: Final = 1_767_225_600.0
"""The time of day at which every simulation starts: 2026-01-01T00:00:00Z."""

TICK_S: Final = 2.0**-22
"""Every time is a whole number of these, about a quarter of a microsecond. So are times of day and what is between two
of them, all without loss: what follows after some seconds does not depend on when they began.
"""

MAX_CALLBACKS_PER_INSTANT: Final = 100_000
"""A correct run needs some hundreds of callbacks between two timers; a client that spins would need no end of them."""

_ADVICE: Final = (
    "Use the transport and the clock of the host you were given, or test this client as a process (--mode process)"
)

_HOST: ContextVar["SimulatedHost | None"] = ContextVar("jobsworth_simulated_host", default=None)

P = ParamSpec("P")
T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class SimulationError(RuntimeError):
    """A simulation that cannot go on::

    SimulationError
    ├── RealIO      a simulated host tried real input, output or waiting
    ├── Deadlock    every task waits and nothing is scheduled
    └── Livelock    something runs or computes without end while no time passes
    """


class RealIO(SimulationError):
    """A simulated client did something that takes real time."""


class Deadlock(SimulationError):
    """Every task waits for something that will never come."""


class Livelock(SimulationError):
    """Callbacks follow callbacks, or one never ends, while virtual time stands still."""


class SimulatedHost:
    """One machine in the simulation: what runs in its context lives and dies with it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.alive = True
        self.frozen = False
        self._held: deque[Handle] = deque()
        self._context = copy_context()
        self._context.run(_HOST.set, self)

    def spawn(self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run ``work`` on this host."""
        # Each task gets a context of its own, as asyncio would give it.
        return loop.create_task(work, context=self._context.copy())

    def call(self, function: Callable[P, T], /, *args: P.args, **options: P.kwargs) -> T:
        """Call ``function`` as code of this host."""
        return self._context.run(function, *args, **options)

    def kill(self) -> None:
        """End the host at this moment; nothing of it runs ever again."""
        self.alive = False
        self.frozen = True

    def freeze(self) -> None:
        """Hold back everything of this host from now on."""
        self.frozen = True

    def thaw(self, loop: "SimulationLoop") -> None:
        """Let a frozen host go on: what would have run meanwhile runs now, in order."""
        if not self.alive:
            raise ValueError(f"{self.name} is dead: it cannot be thawed")
        self.frozen = False
        loop.requeue(self._held)
        self._held = deque()

    def hold(self, handle: Handle) -> None:
        """Keep a callback for later. A dead host's are kept too: dropping them would let Python clean up after the
        dead.
        """
        self._held.append(handle)


class _Timer(TimerHandle):
    """Timers of one instant run in the order of their hosts' names, those of one host in the order they were set."""

    __slots__ = ("_order",)

    def __init__(self, when: float, number: int, *rest: Any) -> None:
        super().__init__(when, *rest)
        host = self._context.get(_HOST)  # type: ignore[attr-defined]
        self._order = (when, host.name if host is not None else "", number)

    def __lt__(self, other: TimerHandle) -> bool:
        return self._order < other._order if isinstance(other, _Timer) else NotImplemented


class SimulationLoop(asyncio.BaseEventLoop):
    """The loop. Time starts at 0 and passes only when nothing is ready to run."""

    # The attributes below are asyncio's own; typeshed does not know them.
    _ready: deque[Handle]
    _scheduled: list[TimerHandle]

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0
        self._numbers = count()
        self._settling: list[asyncio.Future[None]] = []
        self._callbacks_at_this_instant = 0
        self._complaints: list[str] = []
        self._before_time_passes: list[Callable[[], object]] = []
        self.set_exception_handler(self._complain)
        _refuse_real_io_of_hosts()

    def time(self) -> float:
        """Virtual seconds since the start."""
        return self._now

    def call_at(
        self, when: float, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> TimerHandle:
        """Call ``callback`` at a time, or at the first whole tick after it."""
        self._check_closed()  # type: ignore[attr-defined]
        if math.isfinite(when):
            when = math.ceil(when / TICK_S) * TICK_S
        timer = _Timer(when, next(self._numbers), callback, args, self, context)
        heappush(self._scheduled, timer)
        timer._scheduled = True  # type: ignore[attr-defined]  # noqa: SLF001
        return timer

    async def settle(self) -> None:
        """Wait until nothing more happens at this instant."""
        waiter: asyncio.Future[None] = self.create_future()
        self._settling.append(waiter)
        await waiter

    def before_time_passes(self, callback: Callable[[], object]) -> None:
        """Call ``callback`` at the end of each instant, when nothing more happens in it."""
        self._before_time_passes.append(callback)

    def timers(self) -> list[tuple[str, float]]:
        """What living hosts wait for: the host, and in how many seconds it comes."""
        waiting = []
        for handle in self._scheduled:
            host = handle._context.get(_HOST)  # type: ignore[attr-defined]  # noqa: SLF001
            if host is not None and host.alive and not handle.cancelled():
                waiting.append((host.name, handle.when() - self._now))
        return sorted(waiting)

    def requeue(self, handles: "deque[Handle]") -> None:
        """Put callbacks back that were held."""
        self._ready.extend(handles)

    def drain_complaints(self) -> list[str]:
        """What asyncio had to complain of since the last call: exceptions nobody retrieved, and the like."""
        complaints, self._complaints = self._complaints, []
        return complaints

    def _complain(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        self._complaints.append(context["message"] + (f": {error!r}" if error is not None else ""))

    def close(self) -> None:
        """Close, and throw away what killed hosts left undone, without a word about it."""
        if self.is_closed():
            return
        for task in asyncio.all_tasks(self):
            task._log_destroy_pending = False  # type: ignore[attr-defined]  # noqa: SLF001
            coroutine = task.get_coro()
            # Closing runs the `finally` blocks of the dead; whatever they try, nobody listens any more.
            with contextlib.suppress(BaseException):
                if coroutine is not None:
                    coroutine.close()
        super().close()

    def run_forever(self) -> None:
        """Run until stopped; while it runs, ``time.sleep`` refuses to be called by a simulated host."""
        real_sleep = time.sleep

        def sleep(seconds: float | SupportsIndex, /) -> None:
            if _HOST.get() is None:
                real_sleep(seconds)
            else:
                self.sleep_of_host(float(seconds))

        # Python tells its audit hooks of time.sleep only from 3.13 on.
        time.sleep = sleep
        try:
            with turns_watched(lambda: (self._now, self._callbacks_at_this_instant)):
                super().run_forever()
        finally:
            time.sleep = real_sleep

    def sleep_of_host(self, seconds: float) -> None:  # noqa: ARG002  how long does not matter
        """A host called ``time.sleep``."""
        self._refuse("time.sleep()")

    def stop(self) -> None:
        """Stop; a simulated host cannot, since it is not its loop alone."""
        if _HOST.get() is not None:
            self._refuse("to stop the event loop")
        super().stop()

    # -- what BaseEventLoop leaves to its subclasses

    def _run_once(self) -> None:
        ready = self._ready
        if not ready and self._settling:
            waiters, self._settling = self._settling, []
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)
        if not ready:
            self._jump()
        for _ in range(len(ready)):
            handle = ready.popleft()
            if handle.cancelled():
                continue
            host = handle._context.get(_HOST)  # type: ignore[attr-defined]  # noqa: SLF001
            if host is not None and host.frozen:
                host.hold(handle)
                continue
            try:
                handle._run()  # noqa: SLF001
            except Hung:
                raise Livelock(
                    f"{'something' if host is None else host.name} has computed for {LONGEST_TURN_S:g} seconds "
                    f"of processor time at t={self._now:.3f}s and gave nobody a turn: it waits for something without "
                    "waiting on the clock it was given, or never ends"
                ) from None
            except SystemExit as error:
                if host is None:
                    raise
                raise SimulationError(f"{host.name} ended its program from a task of its own: {error!r}") from error
            self._callbacks_at_this_instant += 1
        if self._callbacks_at_this_instant > MAX_CALLBACKS_PER_INSTANT:
            self._callbacks_at_this_instant = 0  # so that the loop can still be used to end what spins
            raise Livelock(
                f"more than {MAX_CALLBACKS_PER_INSTANT} callbacks ran at t={self._now:.3f}s while no time passed: "
                "something spins instead of waiting on the clock it was given"
            )

    def _jump(self) -> None:
        """Move time to the next timer, and make ready what is due then."""
        scheduled = self._scheduled
        while scheduled and scheduled[0].cancelled():
            heappop(scheduled)._scheduled = False  # type: ignore[attr-defined]  # noqa: SLF001
        if not scheduled:
            raise Deadlock(f"at t={self._now:.3f}s every task waits and nothing is scheduled")
        due = scheduled[0].when()
        if due > self._now:  # a timer of no seconds lets no time pass
            for callback in self._before_time_passes:
                callback()
            self._now = due
            self._callbacks_at_this_instant = 0
        while scheduled and scheduled[0].when() <= self._now:
            handle = heappop(scheduled)
            handle._scheduled = False  # type: ignore[attr-defined]  # noqa: SLF001
            self._ready.append(handle)

    def _process_events(self, event_list: object) -> None:
        """There are no events from outside."""

    def _write_to_self(self) -> None:
        """There is no selector to wake."""

    def _refuse(self, what: str) -> NoReturn:
        host = _HOST.get()
        raise RealIO(f"{host.name if host else 'the harness'} tried {what} in a simulation. {_ADVICE}")

    # Both async and plain methods of asyncio's interface raise at the call.
    def run_in_executor(self, *_args: object, **_options: object) -> NoReturn:
        self._refuse("a thread (run_in_executor, to_thread)")

    def create_connection(self, *_args: object, **_options: object) -> NoReturn:
        self._refuse("a network connection")

    def create_server(self, *_args: object, **_options: object) -> NoReturn:
        self._refuse("a listening socket")

    def create_datagram_endpoint(self, *_args: object, **_options: object) -> NoReturn:
        self._refuse("a datagram socket")

    def create_unix_connection(self, *_args: object, **_options: object) -> NoReturn:
        self._refuse("a network connection")

    def getaddrinfo(self, *_args: object, **_options: object) -> NoReturn:
        self._refuse("a name look-up")

    def getnameinfo(self, *_args: object, **_options: object) -> NoReturn:
        self._refuse("a name look-up")

    def sock_connect(self, *_args: object, **_options: object) -> NoReturn:
        self._refuse("a network connection")

    def add_reader(self, *_args: object, **_options: object) -> NoReturn:
        self._refuse("waiting on a file descriptor")

    def add_writer(self, *_args: object, **_options: object) -> NoReturn:
        self._refuse("waiting on a file descriptor")

    def subprocess_exec(self, *_args: object, **_options: object) -> NoReturn:
        self._refuse("another process")

    def subprocess_shell(self, *_args: object, **_options: object) -> NoReturn:
        self._refuse("another process")


class SimulatedClock:
    """The time of day in a simulation, and waiting in it. Waiting takes as long as it takes, whatever the time of day
    is set to.
    """

    def __init__(self, loop: SimulationLoop) -> None:
        self.ahead_s = 0.0  # of true time; negative: behind
        self._loop = loop

    def now(self) -> float:
        """Seconds since the Unix epoch."""
        return EPOCH + self._loop.time() + self.ahead_s

    async def sleep(self, seconds: float) -> None:
        """Wait; nothing real passes."""
        await asyncio.sleep(seconds)


_REFUSED_EVENTS: Final = {
    "socket.bind": "a listening socket",
    "socket.connect": "a network connection",
    "socket.getaddrinfo": "a name look-up",
    "socket.gethostbyname": "a name look-up",
    "socket.sendto": "a network connection",
    "subprocess.Popen": "another process",
    "os.system": "another process",
    "os.fork": "another process",
}
_hook_installed = False


def _refuse_real_io_of_hosts() -> None:
    """Install the audit hook that sees blocking calls, which no event loop is asked about. Once: it cannot be
    removed.
    """
    global _hook_installed  # noqa: PLW0603
    if _hook_installed:
        return
    _hook_installed = True

    def hook(event: str, _arguments: tuple[object, ...]) -> None:
        what = _REFUSED_EVENTS.get(event)
        if what is None:
            return
        host = _HOST.get()
        if host is not None:
            raise RealIO(f"{host.name} tried {what} in a simulation. {_ADVICE}")

    sys.addaudithook(hook)
