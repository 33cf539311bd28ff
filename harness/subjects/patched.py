"""The patched stage: unmodified Python code, in this process and in virtual time.

Its requests are taken by respx at the bottom of httpx and httpx2. freezegun shows it the virtual time of day.
``time.sleep`` lets virtual time pass. Chance comes from the run's seed. Code that blocks runs in a thread, and the
thread and the loop never run at the same time: a thread that sleeps or asks hands over to the loop, which lets time
pass and hands back. So runs are as deterministic as simulated ones.

What cannot be done here: the code shares this process and its modules with the harness, so it can be neither killed nor
frozen as a machine is, and there is one worker only. Threads of the client's own, and waiting by other means than
``time.sleep`` and asyncio (locks with a time-out, ``select``), stay in real time: a client that waits so is found
hanging, and the run is unknown.
"""

import _thread
import asyncio
import inspect
import random
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import ExitStack
from contextvars import Context, copy_context
from datetime import UTC, datetime
from types import ModuleType
from typing import Any, Final, cast
from unittest import mock

from freezegun import freeze_time
from freezegun.api import FrozenDateTimeFactory

from fake_provider.engine import Engine
from fake_provider.facts import Fate
from fake_provider.respx_router import Answering, ProviderRouter
from fake_provider.wire import Answer
from harness.patching import PatchedClient, PatchedFactory, PatchedHost
from harness.simulation import EPOCH, SimulatedHost, SimulationError, SimulationLoop
from harness.stage import SubjectError
from harness.subjects.blame import not_a_client
from harness.subjects.in_process import BASE_URL, SimulatedStage

__all__ = ["HUNG_S", "Hanging", "PatchedLoop", "PatchedStage"]

HUNG_S: Final = 20.0
"""Real seconds a client's thread may compute, or wait by means that stay real, before it counts as hanging."""

_UNWIND_S: Final = 1.0  # real seconds for a thread to end once its run is over; past that it is left alone, a daemon
_REAL_SLEEP: Final = time.sleep
_CURRENT = threading.local()


class Hanging(SimulationError):
    """A client's thread neither came back nor asked for anything."""


class _RunIsOver(BaseException):
    """Raised inside a client's thread that waits when its run ends, so that the thread ends too."""


class _Relay:
    """Blocking code as a coroutine: a thread that runs only while the loop waits for it."""

    def __init__(self, function: Callable[[], Any], context: Context, give_up: Callable[[], None]) -> None:
        """Args:
        give_up: told that the thread hangs.
        """
        self._function = function
        self._give_up = give_up
        self._context = context
        self._go, self._back = threading.Lock(), threading.Lock()
        self._go.acquire()
        self._back.acquire()
        self._wanted: Coroutine[Any, Any, Any] | None = None
        self._given: tuple[Any, BaseException | None] = (None, None)
        self._result: tuple[Any, BaseException | None] = (None, None)
        self._is_over = False
        self._is_running = False

    async def run(self) -> Any:
        """Run the code to its end, doing for it whatever it waits for."""
        self._is_running = True
        # Not threading.Thread: freezegun gives real time to whatever runs a few frames above one of its methods.
        _thread.start_new_thread(self._live, ())
        while True:
            if not self._hand_over():
                self._give_up()
                await asyncio.get_running_loop().create_future()  # the loop ends before this does
            wanted, self._wanted = self._wanted, None
            if wanted is None:
                result, error = self._result
                if error is not None:
                    raise error
                return result
            try:
                self._given = (await wanted, None)
            except Exception as error:  # noqa: BLE001  it belongs to the thread that asked
                self._given = (None, error)

    def _hand_over(self) -> bool:
        """Let the thread run until it waits or ends; return False if it does neither."""
        self._go.release()
        return self._back.acquire(timeout=HUNG_S)

    def wait_for(self, wanted: Coroutine[Any, Any, Any]) -> Any:
        """Called in the thread: let the loop do something, and return what comes of it."""
        if self._is_over:
            wanted.close()
            raise _RunIsOver
        self._wanted = wanted
        self._back.release()
        self._go.acquire()
        if self._is_over:
            raise _RunIsOver
        result, error = self._given
        if error is not None:
            raise error
        return result

    def _live(self) -> None:
        self._go.acquire()
        _CURRENT.relay = self
        try:
            if not self._is_over:
                self._result = (self._context.run(self._function), None)
        except BaseException as error:  # noqa: BLE001  raised again where the loop waits
            self._result = (None, error)
        self._is_running = False
        self._back.release()

    def end(self) -> None:
        """End the thread, wherever it waits. Nothing it does from here on is seen by anyone."""
        if self._is_running:
            self._is_over = True
            self._go.release()
            self._back.acquire(timeout=_UNWIND_S)


def _current_relay() -> _Relay | None:
    return getattr(_CURRENT, "relay", None)


class PatchedLoop(SimulationLoop):
    """A loop of virtual time in which blocking code can run too, and freezegun's clock goes along."""

    def __init__(self) -> None:
        super().__init__()
        self.clock: FrozenDateTimeFactory | None = None
        self._relays: list[_Relay] = []
        self._is_hanging = False

    def relay(self, function: Callable[[], Any]) -> Coroutine[Any, Any, Any]:
        """Return blocking code as a coroutine, to be run in the current context."""
        relay = _Relay(function, copy_context(), self._found_hanging)
        self._relays.append(relay)
        return relay.run()

    def run_in_executor(self, _executor: object, function: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        """Run a function as ``asyncio.to_thread`` asks for."""
        return self.create_task(self.relay(lambda: function(*args)))

    def end_threads(self) -> None:
        """Let no thread of the run live on."""
        for relay in self._relays:
            relay.end()
        self._relays.clear()

    def sleep_of_host(self, seconds: float) -> None:
        """Let virtual time pass for the client's thread that calls."""
        relay = _current_relay()
        if relay is None:
            self._refuse("time.sleep() in asynchronous code, which would stop everything else")
        if not 0 <= seconds < float("inf"):
            raise ValueError(f"time.sleep({seconds}): the length of a sleep is a number that is not negative")
        relay.wait_for(asyncio.sleep(seconds))

    def _found_hanging(self) -> None:
        self._is_hanging = True

    def _run_once(self) -> None:
        super()._run_once()
        if self._is_hanging:
            self._is_hanging = False
            raise Hanging(
                f"the client did not come back within {HUNG_S:g} real seconds: it computes without end, or waits by "
                "means that do not follow virtual time. Test it as a process (--mode process)"
            )

    def _jump(self) -> None:
        super()._jump()
        if self.clock is not None:
            self.clock.move_to(datetime.fromtimestamp(EPOCH + self.time(), UTC))


class PatchedStage(SimulatedStage):
    """The one host of unmodified code, on a :class:`PatchedLoop`."""

    restarts = False
    _patched_loop: PatchedLoop
    _patches: ExitStack

    @classmethod
    def over(cls, factory: PatchedFactory, **options: Any) -> "PatchedStage":
        """Make a stage for a patched client; the options are those of :class:`SimulatedStage`."""
        stage = cls(cast("Any", factory), **options)
        stage._patched_loop = options["loop"]
        stage._patches = ExitStack()
        return stage

    def attach(self, engine: Engine) -> None:
        """Take the network, and put it under httpx and httpx2; from here on time is virtual for everyone."""
        super().attach(engine)
        for library in ("httpcore", "httpcore2"):
            self._patches.enter_context(ProviderRouter(engine, "w1", using=library, wait=_wait_in_thread))
        frozen = freeze_time(datetime.fromtimestamp(EPOCH, UTC))
        clock = self._patches.enter_context(frozen)
        assert isinstance(clock, FrozenDateTimeFactory)
        self._patched_loop.clock = clock
        self._patches.enter_context(_SleepEverywhere())
        self._patches.enter_context(_SeededChance(f"{self._terms.seed}:patched"))

    async def close(self, *, at_once: bool = False) -> None:
        """End the client's threads, and put everything back in its place."""
        await super().close(at_once=at_once)
        self._patched_loop.end_threads()
        self._patched_loop.clock = None
        self._patches.close()

    def build(self, worker: str, host: SimulatedHost, life: int) -> Any:
        """Call the subject's factory."""
        if worker != "w1" or life > 1:
            raise SubjectError("a patched client has one worker, which lives as long as the run")
        given = PatchedHost(
            worker=worker,
            base_url=BASE_URL,
            authorization=self._terms.authorization,
            contract=self._terms.contract,
            timing=self._terms.timing,
            webhook_secrets=self._terms.webhook_secrets,
            disk=self._disk,
        )
        client = host.call(cast("Any", self._factory), given)
        wrong = not_a_client(client, PatchedClient)
        if wrong:
            raise SubjectError(
                f"the subject's factory returned {wrong}; "
                "a client has the methods submit and report (harness.patching.PatchedClient)"
            )
        return client

    async def perform(self, work: Callable[..., Awaitable[Any]], *arguments: Any) -> Any:
        """Run a method of the client, in a thread if it blocks."""
        if inspect.iscoroutinefunction(work):
            return await work(*arguments)
        result = await self._patched_loop.relay(lambda: work(*arguments))
        return await result if inspect.isawaitable(result) else result

    def takes_webhooks(self, client: Any) -> bool:
        """Whether a client has a method for them."""
        return callable(getattr(client, "webhook", None))


def _wait_in_thread(answering: Answering) -> tuple[Answer | None, Fate]:
    relay = _current_relay()
    if relay is None:
        answering.close()
        raise RuntimeError(
            "patched mode: a blocking request from asynchronous code, or from a thread of the client's own. "
            "Test it as a process (--mode process)"
        )
    return cast("tuple[Answer | None, Fate]", relay.wait_for(answering))


class _SleepEverywhere:
    """Replaces ``time.sleep`` where modules have taken it by name; ``time.sleep`` itself is the loop's to replace."""

    def __init__(self) -> None:
        self._replaced: list[tuple[ModuleType, str]] = []

    def __enter__(self) -> None:
        for module in list(sys.modules.values()):
            if module is time or module is sys.modules[__name__]:
                continue
            for name, value in list(vars(module).items()):
                if value is _REAL_SLEEP:
                    setattr(module, name, _sleep)
                    self._replaced.append((module, name))

    def __exit__(self, *_error: object) -> None:
        for module, name in self._replaced:
            setattr(module, name, _REAL_SLEEP)


def _sleep(seconds: float) -> None:
    time.sleep(seconds)


class _SeededChance:
    """Lets chance come from the run's seed, in ``random``, ``uuid4`` and ``secrets``: equal seeds give equal runs."""

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self._state: Any = None
        self._patches = ExitStack()

    def __enter__(self) -> None:
        self._state = random.getstate()
        random.seed(self._seed)
        draw = random.Random(f"{self._seed}:bytes").randbytes
        for place in ("os.urandom", "random._urandom"):
            self._patches.enter_context(mock.patch(place, draw))

    def __exit__(self, *_error: object) -> None:
        self._patches.close()
        random.setstate(self._state)
