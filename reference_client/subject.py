"""The session protocol: the client in a process of its own, told by JSON lines what to do (``python -m
reference_client subject``).

Commands come on standard input, replies and notes leave on standard output, one JSON object a line; the log goes to
standard error. With checkpoints on, each note of a durable write waits for ``go``, which is how a test stops, kills or
refuses at that very point.
"""

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from reference_client.adapters.protocol import RequestError
from reference_client.assembly import Assembly, assemble
from reference_client.commanding import CommandRefused
from reference_client.config import ConfigError, Terms, Timing
from reference_client.creating import OperationConflict
from reference_client.credentials import EnvironmentCredential
from reference_client.lifecycle import LocalState
from reference_client.operation import Decision, HistoryEntry
from reference_client.stores.observed import ObservedStore
from reference_client.stores.protocol import Lease, StoreError, StoreRefused
from reference_client.stores.sqlite import SQLiteStore
from reference_client.webhooks import WebhookSecretError

if TYPE_CHECKING:
    from reference_client.receiver import WebhookServer

__all__ = ["AUTHORIZATION_VARIABLE", "PROTOCOL", "Session", "serve"]

_LOG: Final = logging.getLogger(__name__)

PROTOCOL: Final = 1
AUTHORIZATION_VARIABLE: Final = "JOBSWORTH_AUTHORIZATION"
"""The environment variable that holds the Authorization header's value: it is in no line of the protocol."""

_IDLE_S: Final = 0.25
"""How often to look for work that another process put into the store. Runs under test last seconds, so an eighth of
their usual lease.
"""

_END_S: Final = 2.0
"""How long a stop waits for the calls that are out."""

_LINE_LIMIT_BYTES: Final = 8 << 20

_REFUSALS: Final = (OperationConflict, RequestError, CommandRefused, ConfigError, StoreError, WebhookSecretError)


class _Bad(ValueError):
    """A command that cannot be understood."""


class _Start(msgspec.Struct, frozen=True, kw_only=True):
    protocol: int
    worker: str
    base_url: str
    state_dir: str
    contract: dict[str, Any] = {}
    timing: dict[str, float] = {}
    webhook_secrets: tuple[str, ...] = ()
    checkpoints: bool = False


class _Submit(msgspec.Struct, frozen=True, kw_only=True):
    operation: str
    request: dict[str, Any]


class _Order(msgspec.Struct, frozen=True, kw_only=True):
    operation: str
    who: str
    why: str


class _Decide(_Order, frozen=True, kw_only=True):
    state: LocalState
    job: str | None = None


class Session:
    """One session: from the start command to the stop command.

    Args:
        write: puts one line on standard output, at once.
    """

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write
        self._assembly: Assembly | None = None
        self._takes_webhooks = False
        self._server: WebhookServer | None = None  # once somebody asks where it is
        self._working: asyncio.Task[None] | None = None
        self._checkpoints = False
        self._passed = 0
        self._waiting: dict[int, asyncio.Future[str | None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing = asyncio.Lock()
        self.ended = asyncio.Event()

    # lines in

    def take(self, line: bytes) -> None:
        """Take one line. Commands run side by side: one may wait at a checkpoint that a later line opens."""
        try:
            command = msgspec.json.decode(line, type=dict[str, Any])
        except msgspec.DecodeError as error:
            _LOG.error("a line that is no command: %s", error)
            return
        if command.get("command") == "go":
            waiting = self._waiting.pop(command.get("checkpoint", -1), None)
            if waiting is not None and not waiting.done():
                waiting.set_result(command.get("refuse"))
            return
        task = asyncio.create_task(self._answer(command))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, command: Mapping[str, Any]) -> None:
        number = command.get("id")
        try:
            handler = self._handler(command.get("command"))
            said = await handler(command)
        except (*_REFUSALS, _Bad, msgspec.ValidationError) as error:
            self._say({"reply": number, "ok": False, "error": " ".join(str(error).split())})
            return
        self._say({"reply": number, "ok": True, **said})
        if command.get("command") == "stop":
            self.ended.set()

    def _handler(self, name: Any) -> Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]]:
        handlers: dict[Any, Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]]] = {
            "start": self._start,
            "webhook_url": self._webhook_url,
            "submit": self._submit,
            "cancel": self._cancel,
            "reconcile": self._reconcile,
            "decide": self._decide,
            "report": self._report,
            "stop": self._stop,
        }
        if name not in handlers:
            raise _Bad(f"{name!r} is no command; one of {', '.join(handlers)}")
        if name != "start" and self._assembly is None:
            raise _Bad(f"{name} before start")
        return handlers[name]

    def _say(self, what: Mapping[str, Any]) -> None:
        self._write(msgspec.json.encode(what) + b"\n")

    @property
    def _running(self) -> Assembly:
        if self._assembly is None:
            raise _Bad("not started")
        return self._assembly

    # commands

    async def _start(self, command: Mapping[str, Any]) -> dict[str, Any]:
        start = msgspec.convert(command, _Start)
        if start.protocol != PROTOCOL:
            raise _Bad(f"protocol {start.protocol} is not spoken here; {PROTOCOL} is")
        if self._assembly is not None:
            raise _Bad("started already")
        self._checkpoints = start.checkpoints
        terms, timing = Terms.read(start.contract), msgspec.convert(start.timing, Timing)
        directory = Path(start.state_dir)
        store = ObservedStore(SQLiteStore(directory / "operations.sqlite"), self)
        self._assembly = assemble(
            worker=start.worker,
            base_url=start.base_url,
            store=store,
            credentials=EnvironmentCredential(AUTHORIZATION_VARIABLE),
            terms=terms,
            timing=timing,
            webhook_secrets=start.webhook_secrets,
            results=directory / "results",
            idle_s=min(_IDLE_S, timing.lease_s),
        )
        capabilities = ["cancel", "decide", "reconcile", "workers"]
        if start.checkpoints:
            capabilities.append("checkpoints")
        if start.webhook_secrets:
            capabilities.append("webhooks")
        self._takes_webhooks = bool(start.webhook_secrets)
        self._working = asyncio.create_task(self._assembly.client.run())
        return {"protocol": PROTOCOL, "name": "reference", "capabilities": sorted(capabilities)}

    async def _webhook_url(self, _: Mapping[str, Any]) -> dict[str, Any]:
        if self._server is None and self._takes_webhooks:
            from reference_client.receiver import WebhookServer  # half of the time that starting takes

            self._server = WebhookServer(self._running.intake.take)
            await self._server.__aenter__()
        return {"url": None if self._server is None else self._server.url}

    async def _submit(self, command: Mapping[str, Any]) -> dict[str, Any]:
        given = msgspec.convert(command, _Submit)
        await self._running.client.submit(given.operation, given.request, authorised_by="the session")
        return {}

    async def _cancel(self, command: Mapping[str, Any]) -> dict[str, Any]:
        given = msgspec.convert(command, _Order)
        await self._running.client.cancel(given.operation, who=given.who, why=given.why)
        return {}

    async def _reconcile(self, command: Mapping[str, Any]) -> dict[str, Any]:
        given = msgspec.convert(command, _Order)
        await self._running.client.reconcile(given.operation, who=given.who, why=given.why)
        return {}

    async def _decide(self, command: Mapping[str, Any]) -> dict[str, Any]:
        given = msgspec.convert(command, _Decide)
        decision = Decision(who=given.who, why=given.why, state=given.state, remote_job_id=given.job)
        await self._running.client.decide(given.operation, decision)
        return {}

    async def _report(self, _: Mapping[str, Any]) -> dict[str, Any]:
        return {"claims": await self._running.client.summaries()}

    async def _stop(self, _: Mapping[str, Any]) -> dict[str, Any]:
        await self.close()
        return {}

    async def close(self) -> None:
        """End in good order: what is in hand is brought to a resting place, if that takes no longer than a moment."""
        async with self._closing:  # the input may end while a stop command is carried out
            if self._assembly is None or self._working is None:
                return
            self._assembly.client.stop()
            await asyncio.wait({self._working}, timeout=_END_S)
            self._working.cancel()
            if self._server is not None:
                await self._server.__aexit__()
            await self._assembly.close()
            self._assembly = None

    # notes out: the observer of the store

    async def recording(self, entry: HistoryEntry) -> None:
        refused = await self._note({"note": "recording", "operation": entry.operation_id, "after": entry.after})
        if refused is not None:
            raise StoreRefused(refused)

    async def recorded(self, entry: HistoryEntry) -> None:
        await self._note(
            {
                "note": "recorded",
                "operation": entry.operation_id,
                "before": entry.before,
                "after": entry.after,
                "entry": entry.kind,
                "actor": entry.actor,
                "cause": entry.cause,
                "reason": entry.reason,
                "remote_job": entry.remote_job_id,
                "remote_state": entry.remote_state,
            }
        )

    async def lease(self, lease: Lease, what: str, lasts_s: float) -> None:
        await self._note(
            {
                "note": "lease",
                "operation": lease.operation_id,
                "what": what,
                "fence": lease.fence,
                "lasts_s": lasts_s,
            }
        )

    async def _note(self, note: dict[str, Any]) -> str | None:
        """Say it; with checkpoints, wait to be let go on. Return why the write is refused, if it is."""
        if not self._checkpoints:
            self._say(note)
            return None
        self._passed += 1
        checkpoint = self._passed
        waiting = self._waiting[checkpoint] = asyncio.get_running_loop().create_future()
        self._say({**note, "checkpoint": checkpoint})
        refused: str | None = await waiting
        return refused


async def serve() -> None:
    """Serve one session on standard input and output, until told to stop or until the input ends."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_LINE_LIMIT_BYTES)
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)

    def write(line: bytes) -> None:
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()

    session = Session(write)
    ended = asyncio.create_task(session.ended.wait())
    try:
        while not session.ended.is_set():
            reading = asyncio.create_task(reader.readline())
            await asyncio.wait({reading, ended}, return_when=asyncio.FIRST_COMPLETED)
            if not reading.done():
                reading.cancel()
                break
            line = reading.result()
            if not line:
                break
            if line.strip():
                session.take(line)
    finally:
        ended.cancel()
        await session.close()
        transport.close()
