"""The asyncio part that both shells share: drives exchanges, keeps the provider's timers, delivers webhooks.

Nothing here belongs to the worker that made a request: a request once received is worked on even if its client dies.
All callbacks and tasks run in the context that was current when the engine was made, so that a simulation which freezes
a worker by its context does not freeze the provider with it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import Context, copy_context
from typing import Final, Protocol

from fake_provider.boundary import Boundary
from fake_provider.clock import Clock, ManualClock
from fake_provider.effects import (
    Begin,
    Copy,
    Effect,
    Exchange,
    HostEffect,
    KillHost,
    Send,
    SetClock,
    Wait,
    WaitFor,
)
from fake_provider.facts import Fate
from fake_provider.mailroom import Departure
from fake_provider.webhooks import Attempt
from fake_provider.wire import Answer, Request

__all__ = ["Attempt", "Deliver", "Engine", "HostControl", "Passage", "Shell"]

_CLOCK_GRAIN_S: Final = 1e-3
"""A loop's timer may fire this much before its time by the clock; it counts as on time."""

Deliver = Callable[[Attempt], Awaitable[int | None]]
"""Brings one webhook to a client and returns its HTTP status, None if there was no answer. Sets ``attempt.worker``."""


class HostControl(Protocol):
    """What the machine a client runs on can be made to do."""

    def kill(self, worker: str) -> None:
        """End the worker at once, as SIGKILL does."""
        ...

    def stop(self, worker: str, for_s: float | None) -> None:
        """Freeze the worker as SIGSTOP does, and resume it after ``for_s`` seconds; None: someone else will."""
        ...

    def set_clock(self, worker: str, ahead_s: float) -> None:
        """Set the machine's wall clock so many seconds ahead of true time; its monotonic clock runs on as it did."""
        ...

    def is_running(self, worker: str) -> bool:
        """Whether the worker is neither dead nor frozen."""
        ...


class Shell(Protocol):
    """Brings one exchange's answer to its client."""

    def begin(self, passage: "Passage", answer: Answer) -> bool:
        """Send the head of the answer and half of its body, if that makes a difference here.

        Returns:
            As :meth:`send`.
        """
        ...

    def send(self, passage: "Passage", send: Send) -> bool:
        """Let the answer end as ``send.fate`` says, or say in ``send.fate`` that the client is gone.

        Returns:
            True when that is done; False if :meth:`Passage.sent` will be called once it is.
        """
        ...

    def ended(self, passage: "Passage") -> None:
        """The exchange is over. If nothing was sent, nothing will be: the client's host is dead."""
        ...


class _Nowhere:
    """The shell of a copy: nobody hears its answer."""

    def begin(self, passage: "Passage", answer: Answer) -> bool:  # noqa: ARG002
        return True

    def send(self, passage: "Passage", send: Send) -> bool:  # noqa: ARG002
        send.fate = Fate.LOST
        return True

    def ended(self, passage: "Passage") -> None:
        """Nobody waits."""


class Passage:
    """One exchange on its way through the boundary."""

    __slots__ = ("_effect", "_engine", "_exchange", "_shell", "_timer", "abandoned", "error", "is_over", "worker")

    def __init__(self, engine: "Engine", exchange: Exchange, shell: Shell, worker: str) -> None:
        self._engine = engine
        self._exchange = exchange
        self._shell = shell
        self._effect: Effect | None = None
        self.worker = worker
        self._timer: asyncio.TimerHandle | None = None
        self.abandoned = False  # the client went away
        self.error: Exception | None = None  # our own bug, for the shell to raise
        self.is_over = False

    def abandon(self) -> None:
        """Say that the client went away: the exchange goes on, and its answer goes nowhere."""
        self.abandoned = True

    def sent(self) -> None:
        """Say that what was handed to :meth:`Shell.begin` or :meth:`Shell.send` is done."""
        self._go(start=False)

    def begin(self) -> None:
        self._go(start=True)

    def _resume(self) -> None:
        self._timer = None
        self._go(start=False)

    def _go(self, *, start: bool) -> None:
        """Run until the exchange has to wait, or is over. Never raises."""
        if self.is_over:
            return
        now = self._engine.clock.now
        try:
            effect = next(self._exchange) if start else self._exchange.send(now())
            while not self._waits(effect):
                effect = self._exchange.send(now())
        except StopIteration:
            self._finish()
        except Exception as error:  # noqa: BLE001  handed to the shell, which raises it where someone looks
            self.error = error
            self._finish()
        self._engine.arm()

    def _finish(self) -> None:
        self.is_over = True
        self._engine.forget(self)
        self._shell.ended(self)

    def _waits(self, effect: Effect) -> bool:
        """Bring an effect about; return whether the exchange has to wait for it."""
        engine = self._engine
        if isinstance(effect, Send):
            if self.abandoned:
                effect.fate = Fate.ABANDONED
                return False
            effect.since = engine.clock.now()
            return not self._shell.send(self, effect)
        if isinstance(effect, Begin):
            return not self.abandoned and not self._shell.begin(self, effect.answer)
        if isinstance(effect, Wait):
            self._timer = engine.loop.call_later(effect.seconds, self._resume, context=engine.context)
            return True
        if isinstance(effect, WaitFor):
            # Not at once: whoever opens the gate is in the midst of its own exchange.
            effect.gate.when_open(lambda: engine.loop.call_soon(self._resume, context=engine.context))
            return True
        if isinstance(effect, Copy):
            engine.begin(effect.request, effect.worker, _Nowhere(), copy_of=effect.copy_of)
            return False
        engine.affect(effect)
        return False

    def close(self) -> None:
        """Drop the exchange where it stands."""
        self.is_over = True
        if self._timer is not None:
            self._timer.cancel()
        self._exchange.close()


class Engine:
    """Runs one boundary on the running event loop."""

    def __init__(self, boundary: Boundary, clock: Clock, *, hosts: HostControl, deliver: Deliver) -> None:
        self.boundary = boundary
        self.clock = clock
        self.hosts = hosts
        self.context: Context = copy_context()
        self._deliver = deliver
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due: float | None = None
        self._waiting: set[Passage] = set()
        self._deliveries: set[asyncio.Task[None]] = set()
        boundary.when_changed(self.wake)

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            raise RuntimeError("the engine is not running: call start() within an event loop first")
        return self._loop

    def start(self) -> None:
        """Take up work on the running event loop."""
        self._loop = asyncio.get_running_loop()
        self.arm()

    async def close(self) -> None:
        """Drop all exchanges and deliveries under way, and all timers."""
        self._set_timer(None)
        for passage in list(self._waiting):
            passage.close()
        self._waiting.clear()
        deliveries = list(self._deliveries)
        for task in deliveries:
            task.cancel()
        await asyncio.gather(*deliveries, return_exceptions=True)
        self._loop = None

    def begin(self, request: Request, worker: str, shell: Shell, *, copy_of: int | None = None) -> Passage:
        """Take in one request. An exchange that need not wait is over when this returns."""
        exchange = self.boundary.exchange(request, worker, self.clock.now(), copy_of=copy_of)
        passage = Passage(self, exchange, shell, worker)
        self._waiting.add(passage)
        passage.begin()
        return passage

    def client_died(self, worker: str) -> None:
        """Say that a worker's host is dead: what it asked for goes on, and the answers go nowhere."""
        for passage in self._waiting:
            if passage.worker == worker:
                passage.abandon()

    def forget(self, passage: Passage) -> None:
        self._waiting.discard(passage)

    def affect(self, effect: HostEffect) -> None:
        """Do to a worker's host what a fault says."""
        # In a copy: we may be in the context already, or in that of the very worker that is to freeze.
        neutral = self.context.copy()
        if isinstance(effect, KillHost):
            neutral.run(self.hosts.kill, effect.worker)
        elif isinstance(effect, SetClock):
            neutral.run(self.hosts.set_clock, effect.worker, effect.ahead_s)
        else:
            neutral.run(self.hosts.stop, effect.worker, effect.for_s)

    # -- the provider's own time -----------------------------------------------------------------------------------

    def wake(self) -> None:
        """Look at the time again: the clock was moved, or something fell due that no exchange brought about."""
        if self._loop is not None:
            self.arm()

    async def advance(self, clock: ManualClock, seconds: float) -> None:
        """Move a manual clock forward, letting everything in between happen at its own time."""
        until = clock.now() + seconds
        while (due := self.boundary.next_due()) is not None and due <= until:
            clock.advance(max(0.0, due - clock.now()))
            self._on_time()
            await asyncio.gather(*self._deliveries)
        clock.advance(max(0.0, until - clock.now()))
        self.wake()

    def arm(self) -> None:
        """Set the timer for what is due next at the provider."""
        due = self.boundary.next_due()
        if due != self._timer_due:
            self._set_timer(due)

    def _set_timer(self, due: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_due = due
        self._timer = (
            self.loop.call_later(max(0.0, due - self.clock.now()), self._on_time, context=self.context)
            if due is not None
            else None
        )

    def _on_time(self) -> None:
        now, due = self.clock.now(), self._timer_due
        self._timer = self._timer_due = None
        if due is not None and now < due <= now + _CLOCK_GRAIN_S:
            now = due
        self.boundary.advance(now)
        for departure in self.boundary.mail.departures(now):
            task = self.loop.create_task(self._bring(departure), context=self.context)
            self._deliveries.add(task)
            task.add_done_callback(self._deliveries.discard)
        self.arm()

    async def _bring(self, departure: Departure) -> None:
        """Bring one webhook to its receiver and take note of the answer."""
        if departure.delay_s > 0:
            await asyncio.sleep(departure.delay_s)
        status: int | None = None
        try:
            async with asyncio.timeout(self.boundary.contract.webhooks.timeout_s):
                status = await self._deliver(departure.attempt)
        except TimeoutError:
            pass  # a receiver that does not answer is what None says
        for effect in self.boundary.mail.arrived(departure, status, self.clock.now()):
            self.affect(effect)
        self.arm()
