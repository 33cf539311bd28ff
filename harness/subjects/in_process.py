"""The simulated stage: workers are coroutines on simulated hosts, and time is virtual."""

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from random import Random
from typing import Any, Final

import msgspec

from fake_provider.engine import Engine
from fake_provider.transport import InProcessTransport
from fake_provider.webhooks import Attempt
from harness.history import (
    ClockSet,
    CommandRefused,
    SubjectComplained,
    WorkerEnded,
    WorkerResumed,
    WorkerStarted,
    WorkerStopped,
)
from harness.simulation import SimulatedClock, SimulatedHost, SimulationError, SimulationLoop
from harness.stage import Notebook, SubjectError, Terms
from harness.subject import (
    Candid,
    Claim,
    Client,
    Factory,
    Host,
    Note,
    Outlook,
    Recording,
    Refused,
    WebhookReceiver,
    WriteRefused,
)
from harness.subjects.blame import blame, not_a_client
from harness.subjects.lines import BadLine, check_claim

__all__ = ["BASE_URL", "SimulatedStage"]

BASE_URL: Final = "http://provider.test"

_OPTIONAL: Final = frozenset({"decide", "reconcile"})
"""Commands that a client need not take."""
"""Where a simulated client finds the provider: a name that no resolver knows (RFC 6761)."""


class _Worker:
    """One start of a worker: its host, its client and what it was told to do."""

    def __init__(self, host: SimulatedHost, client: Client) -> None:
        self.host = host
        self.client = client


class SimulatedStage:
    """Simulated hosts on one loop, all on one disk."""

    restarts = True
    """Whether a worker that has ended can be started again."""

    def __init__(self, factory: Factory, *, loop: SimulationLoop, terms: Terms, notebook: Notebook) -> None:
        self._factory = factory
        self._loop = loop
        self._true_time = SimulatedClock(loop)
        self._clocks: dict[str, SimulatedClock] = {}  # of the workers' hosts
        self._terms = terms
        self._notebook = notebook
        self._record = notebook.record
        self._engine: Engine | None = None
        self._workers: dict[str, _Worker] = {}
        self._lives: dict[str, int] = {}
        self._graves: list[_Worker] = []  # kept to the end, or Python would clean up after the dead
        self._disk: dict[str, Any] = {}
        self._draws: dict[str, Random] = {}  # of each worker's life
        self._refused: SimulationError | None = None  # what a client tried first that cannot be simulated
        self._fresh_since: dict[str, int] | None = None  # each worker's life when randomness was restarted

    def attach(self, engine: Engine) -> None:
        """Take the network the workers are to use."""
        self._engine = engine

    # -- hosts

    async def start(self, worker: str) -> None:
        """Start a worker, for the first time or again."""
        if self.is_living(worker):
            raise ValueError(f"{worker} is running already")
        life = self._lives[worker] = self._lives.get(worker, 0) + 1
        host = SimulatedHost(worker)
        try:
            client = self.build(worker, host, life)
        except SubjectError:
            raise
        except SimulationError as error:
            raise SubjectError(f"the subject cannot be simulated: {error}") from error
        except (Exception, SystemExit) as error:
            raise SubjectError(f"the subject's factory failed: {blame(error)}") from error
        self._record(WorkerStarted(worker=worker, life=life))
        if worker in self._workers:
            self._graves.append(self._workers[worker])
        self._workers[worker] = _Worker(host, client)
        run = getattr(client, "run", None)
        if run is not None:
            self._spawn(worker, "run", run)

    def build(self, worker: str, host: SimulatedHost, life: int) -> Client:
        """Call the subject's factory."""
        given = Host(
            worker=worker,
            base_url=BASE_URL,
            transport=InProcessTransport(self._network, worker),
            clock=self._clock(worker),
            random=self._draw(worker, life),
            disk=self._disk,
            store_now=self._true_time.now,
            contract=self._terms.contract,
            timing=self._terms.timing,
            authorization=self._terms.authorization,
            webhook_secrets=self._terms.webhook_secrets,
            note=self._noting(worker, host),
        )
        client = host.call(self._factory, given)
        wrong = not_a_client(client, Client)
        if wrong:
            raise SubjectError(
                f"the subject's factory returned {wrong}; "
                "a client has the async methods submit, cancel and report (harness.subject.Client)"
            )
        return client

    def _draw(self, worker: str, life: int) -> Random:
        word = "" if self._fresh_since is None else "again:"
        life -= (self._fresh_since or {}).get(worker, 0)
        draw = self._draws[worker] = Random(f"{self._terms.seed}:{worker}:{word}{life}")
        return draw

    async def perform(self, work: Callable[..., Awaitable[Any]], *arguments: Any) -> Any:
        """Run a method of the client."""
        waiting = work(*arguments)
        if not inspect.isawaitable(waiting):
            raise TypeError(f"it is not async: it returned a {type(waiting).__name__}, which cannot be awaited")
        return await waiting

    def takes(self, command: str) -> bool:
        """Whether the clients, all made by one factory, have a method for a command."""
        first = next(iter(self._workers.values()), None)
        return first is not None and callable(getattr(first.client, command, None))

    @property
    def hears_webhooks(self) -> bool:
        """Whether the clients, all made by one factory, take webhooks."""
        first = next(iter(self._workers.values()), None)
        return first is not None and self.takes_webhooks(first.client)

    def takes_webhooks(self, client: Any) -> bool:
        """Whether a client has a method for them."""
        return isinstance(client, WebhookReceiver)

    def kill(self, worker: str) -> None:
        """End a worker at this moment."""
        if self.is_living(worker):
            self._workers[worker].host.kill()
            self._record(WorkerEnded(worker=worker, how="killed"))
            self._network.client_died(worker)

    def stop(self, worker: str, for_s: float | None) -> None:
        """Freeze a worker, until resumed or for ``for_s`` seconds."""
        if not self.is_running(worker):
            return
        host = self._workers[worker].host
        host.freeze()
        self._record(WorkerStopped(worker=worker))
        if for_s is not None:
            self._loop.call_later(for_s, self._resume_life, worker, host, context=self._network.context)

    def resume(self, worker: str) -> None:
        """Let a stopped worker go on."""
        if self.is_living(worker):
            self._resume_life(worker, self._workers[worker].host)

    def _resume_life(self, worker: str, host: SimulatedHost) -> None:
        if host.alive and host.frozen:
            self._record(WorkerResumed(worker=worker))
            host.thaw(self._loop)

    def set_clock(self, worker: str, ahead_s: float) -> None:
        """Set the wall clock of a worker's host, dead or alive."""
        clock = self._clock(worker)
        if clock.ahead_s != ahead_s:
            clock.ahead_s = ahead_s
            self._record(ClockSet(worker=worker, ahead_s=ahead_s))

    def _clock(self, worker: str) -> SimulatedClock:
        return self._clocks.setdefault(worker, SimulatedClock(self._loop))

    def is_living(self, worker: str) -> bool:
        """Tell whether the worker was started and has not ended."""
        return worker in self._workers and self._workers[worker].host.alive

    def is_running(self, worker: str) -> bool:
        """Tell whether the worker lives and is not frozen."""
        return worker in self._workers and not self._workers[worker].host.frozen

    def outlook(self) -> Outlook | None:
        """What the workers will go on from; None if one does not say, or if none lives to say what is on the disk."""
        if not any(worker.host.alive for worker in self._workers.values()):
            return None
        state: list[tuple[object, ...]] = []
        ends: dict[str, float] = {}
        for name, worker in sorted(self._workers.items()):
            if not worker.host.alive:
                state.append((name, "dead"))
                continue
            if not isinstance(worker.client, Candid):
                return None
            said: Any = worker.client.outlook()
            if not isinstance(said, Outlook) or not all(isinstance(in_s, int | float) for in_s in said.ends.values()):
                raise TypeError(f"{said!r} is no Outlook with seconds as its ends")
            state.append((name, "frozen" if worker.host.frozen else "running", said.state))
            ends |= {f"{name}: {what}": in_s for what, in_s in said.ends.items()}
        wrong = sorted((name, clock.ahead_s) for name, clock in self._clocks.items() if clock.ahead_s)
        return Outlook(state=(state, wrong), ends=ends)

    def restart_randomness(self) -> None:
        """Let the clients draw from here on what they would draw from here on in any other run of this seed."""
        for name, draw in self._draws.items():
            draw.seed(f"{self._terms.seed}:{name}:again")
        self._fresh_since = dict(self._lives)

    # -- what workers are told and asked

    async def command(
        self, worker: str, command: str, operation: str, arguments: Mapping[str, Any]
    ) -> asyncio.Future[Any]:
        """Tell a worker to do something; a client may take as long as it likes over it."""
        client = self._workers[worker].client
        method = getattr(client, command, None)
        if method is None:
            message = f"the client has no method {command!r}"
            if command in _OPTIONAL:  # whoever says so by having none refuses it, and is not held to it
                self._record(CommandRefused(worker=worker, command=command, operation=operation, reason=message))
            else:
                self._record(SubjectComplained(worker=worker, message=message))
            done: asyncio.Future[Any] = self._loop.create_future()
            done.set_result(None)
            return done

        async def obey() -> None:
            try:
                await self.perform(functools.partial(method, operation, **arguments))
            except Refused as refusal:
                fact = CommandRefused(worker=worker, command=command, operation=operation, reason=str(refusal))
                self._notebook.write(worker, "reply", fact)

        return self._spawn(worker, command, obey)

    async def report(self, worker: str) -> Sequence[Claim]:
        """Ask for claims; a client that fails to answer makes none."""
        task = self._spawn(worker, "report", self._workers[worker].client.report)
        await asyncio.wait({task}, timeout=1)
        if not task.done() or task.cancelled():
            return ()
        return self._sound(worker, task.result())

    def _sound(self, worker: str, claims: object) -> Sequence[Claim]:
        """Return the claims that say something; of the others it is written down what is wrong with them."""
        if not isinstance(claims, Collection) or isinstance(claims, str | bytes | Mapping):
            message = f"report() returned a {type(claims).__name__}; a list of harness.subject.Claim is wanted"
            self._notebook.write(worker, "claim", SubjectComplained(worker=worker, message=message))
            return ()
        sound = []
        for claim in claims:
            try:
                if not isinstance(claim, Claim):
                    raise TypeError(f"a {type(claim).__name__}, where a harness.subject.Claim is wanted")
                sound.append(check_claim(msgspec.convert(msgspec.structs.asdict(claim), Claim)))
            except (msgspec.ValidationError, TypeError, BadLine) as error:
                message = f"report() claimed what is no claim: {error}"
                self._notebook.write(worker, "claim", SubjectComplained(worker=worker, message=message))
        return sound

    async def deliver(self, attempt: Attempt) -> int | None:
        """Hand a delivery to the first living worker that takes webhooks, one that runs if there is one."""
        takers = [name for name in sorted(self._workers) if self.is_living(name)]
        takers.sort(key=lambda name: not self.is_running(name))
        for name in takers:
            client = self._workers[name].client
            if self.takes_webhooks(client):
                attempt.worker = name
                # The receiver goes on with a delivery even when the provider has stopped waiting for its answer.
                taker: Any = client
                work = self._spawn(name, "webhook", taker.webhook, attempt.headers, attempt.body)
                return await asyncio.shield(work)
        return None

    async def settle(self) -> None:
        """Let everything happen that happens at this instant.

        Raises:
            SimulationError: a client tried what cannot be simulated, so that the run proves nothing.
        """
        await self._loop.settle()
        if self._refused is not None:
            raise self._refused

    async def close(self, *, at_once: bool = False) -> None:  # noqa: ARG002  a simulated host knows no other end
        """Kill the hosts that still live. What they leave undone no longer matters: the history is complete."""
        for worker in self._workers.values():
            worker.host.kill()

    # -- inside

    def _spawn(self, worker: str, what: str, work: Callable[..., Awaitable[Any]], *arguments: Any) -> asyncio.Task[Any]:
        """Run a client's code on its host. What escapes from it is written down; from ``run`` it ends the worker."""

        async def guarded() -> Any:
            try:
                return await self.perform(work, *arguments)
            except asyncio.CancelledError as error:
                task = asyncio.current_task()
                if task is None or task.cancelling():
                    raise
                self._raised(worker, what, error)  # the client's own, and nobody else's: its task was not cancelled
            except (Exception, SystemExit) as error:  # noqa: BLE001  the client is foreign code: anything may come
                self._raised(worker, what, error)
            return () if what == "report" else None

        return self._workers[worker].host.spawn(self._loop, guarded())

    def _raised(self, worker: str, what: str, error: BaseException) -> None:
        """Write down what escaped from a client's code; what ends a program ends its worker."""
        said = SubjectComplained(worker=worker, message=f"{what}() raised {blame(error)}")
        self._notebook.write(worker, "log", said)
        if isinstance(error, SimulationError):
            self._refused = self._refused or error
        if (what == "run" or isinstance(error, SystemExit)) and self.is_living(worker):
            self._workers[worker].host.kill()
            self._notebook.write(worker, "log", WorkerEnded(worker=worker, how="crashed", detail=blame(error)))
            if not self.restarts:
                self._refused = SimulationError(
                    f"{worker} ended by itself, and cannot be started again: {blame(error)}"
                )

    def _noting(self, worker: str, host: SimulatedHost) -> Callable[[Note], Awaitable[None]]:
        async def note(said: Note) -> None:
            refusal = self._notebook.take(worker, said)
            if host.frozen:
                await asyncio.sleep(0)  # the loop holds this back until the host is thawed, or for ever
            if refusal is not None and isinstance(said, Recording):
                raise WriteRefused(refusal)

        return note

    @property
    def _network(self) -> Engine:
        assert self._engine is not None, "attach() comes first"
        return self._engine
