"""The process stage: workers are operating-system processes, on real sockets and in real time.

Each worker leads a process group of its own, has a port of its own at the provider (so that the history knows who
called), and speaks the session protocol of ``lines``. Kill and stop are SIGKILL and SIGSTOP to the whole group.
Nothing is left behind, and no subject can hold the harness up: whatever it does ends in time, with the reason.
"""

import asyncio
import contextlib
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import httpx2

from fake_provider.webhooks import Attempt
from harness.history import (
    CommandRefused,
    ProcessReaped,
    SubjectComplained,
    WorkerEnded,
    WorkerResumed,
    WorkerStarted,
    WorkerStopped,
)
from harness.stage import Notebook, SubjectError, Terms
from harness.subject import Capability, Claim
from harness.subjects.groups import MAX_OUTPUT_BYTES, Group, status_of
from harness.subjects.lines import (
    PROTOCOL,
    BadLine,
    Cancel,
    Command,
    Decide,
    Go,
    NoteLine,
    Reconcile,
    Reply,
    Report,
    Start,
    Stop,
    Submit,
    WebhookUrl,
    read_line,
    write_line,
)
from harness.subjects.programs import ProgramStage

__all__ = ["Patience", "ProcessStage"]

MAX_LINE_BYTES: Final = 1 << 20
"""A claim for some thousand operations fits; a subject that writes more on one line is out of order."""

MAX_BAD_LINES: Final = 20
"""A worker that writes so many lines that are not of the protocol does not speak it."""

SHOWN_WORDS: Final = 3  # lines of its log that the reason for an unknown verdict repeats

_COMMANDS: Final[Mapping[str, Callable[..., Command]]] = {
    "submit": Submit,
    "cancel": Cancel,
    "reconcile": Reconcile,
    "decide": Decide,
}


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How long, in seconds, a worker that is not stopped may take over its side of the protocol."""

    start_s: float = 20.0  # for a slow language runtime to come up on a busy machine
    reply_s: float = 10.0  # to a report; longer than any request time-out that a scenario sets
    command_s: float = 30.0  # to a submit, which may wait for its store, or at a checkpoint
    stop_s: float = 3.0  # to end in good order once asked


class _Worker:
    """One start of a worker: its processes and what is awaited from them."""

    def __init__(self, name: str, life: int, group: Group) -> None:
        self.name = name
        self.life = life
        self.group = group
        self.stopped = False
        self.stops = 0
        self.expected_end: str | None = None  # how it is about to end, when we know
        self.ended = False
        self.webhook_url: str | None = None
        self.replies: dict[int, asyncio.Future[Reply]] = {}
        self.tasks: list[asyncio.Task[None]] = []
        self.bad_lines = 0
        self.complaint = ""  # about the last of them

    def send(self, line: bytes) -> None:
        """Write to its standard input; a worker that is gone takes nothing."""
        assert self.group.process.stdin is not None
        with contextlib.suppress(ConnectionError, RuntimeError):
            self.group.process.stdin.write(line)


class ProcessStage(ProgramStage):
    """Processes of one command, all with one state directory."""

    def __init__(
        self, command: Sequence[str], *, terms: Terms, notebook: Notebook, patience: Patience | None = None
    ) -> None:
        super().__init__(command, terms=terms, notebook=notebook)
        self._patience = patience or Patience()
        self._workers: dict[str, _Worker] = {}
        self._gone: list[_Worker] = []  # earlier lives
        self._next_id = 0
        self._background: set[asyncio.Task[None]] = set()

    @cached_property
    def _http(self) -> httpx2.AsyncClient:
        """For webhooks; made when one is to be delivered, since it reads all certificates."""
        return httpx2.AsyncClient(timeout=None, trust_env=False)

    # -- hosts

    async def start(self, worker: str) -> None:
        """Start a worker's process, for the first time or again."""
        await self.introduce(worker)

    async def introduce(self, worker: str) -> tuple[Capability, ...]:
        """Start a worker's process, and return what it says it can do."""
        self._raise_if_broken()
        if self.is_living(worker):
            raise ValueError(f"{worker} is running already")
        life = 1
        if worker in self._workers:
            life += self._workers[worker].life
            self._gone.append(self._workers.pop(worker))
        log = self._new_log(f"{worker}-{life}", worker)
        environment = {"JOBSWORTH_AUTHORIZATION": self._terms.authorization}
        group = await Group.start(self._command, environment, log=log, limit=MAX_LINE_BYTES, talks=True)
        started = self._workers[worker] = _Worker(worker, life, group)
        started.tasks = [
            asyncio.create_task(self._read_output(started)),
            asyncio.create_task(self._await_end(started)),
        ]
        base_url = await self._url_for(worker)
        command = Start(
            id=self._new_id(),
            protocol=PROTOCOL,
            worker=worker,
            base_url=base_url,
            state_dir=str(self._home),
            contract=self._terms.contract,
            timing=self._terms.timing,
            webhook_secrets=self._terms.webhook_secrets,
            checkpoints=True,
            seed=self._terms.seed,
        )
        reply = await self._ask(started, command, self._patience.start_s)
        if reply is None or not reply.ok or reply.protocol != PROTOCOL:
            self._raise_if_broken()
            why, hangs = await self._why_not_up(started, reply)
            if life == 1 and not hangs:
                raise SubjectError(why)  # it cannot be put under test as it was given: wrong usage, not a verdict
            self._break(why)
            self._raise_if_broken()
            return ()
        self._record(WorkerStarted(worker=worker, life=life))
        if "webhooks" in reply.capabilities and self._terms.contract["webhooks"]["enabled"]:
            answer = await self._ask(started, WebhookUrl(id=self._new_id()), self._patience.reply_s)
            started.webhook_url = answer.url if answer is not None else None
        return reply.capabilities

    async def _why_not_up(self, worker: _Worker, reply: Reply | None) -> tuple[str, bool]:
        """Say why a worker is not up, and whether it hangs."""
        program = " ".join(self._command)
        if reply is not None and not reply.ok:
            return f"{program!r} refused to start: {reply.error or 'it gave no reason'}", False
        if reply is not None:
            return f"{program!r} speaks protocol {reply.protocol}, this harness speaks {PROTOCOL}", False
        code = worker.group.process.returncode
        if code is None:
            worker.group.signal(signal.SIGKILL)
            what = f"did not answer the start command within {self._patience.start_s:g} s"
        else:
            what = f"ended before it answered the start command, with {status_of(code)}"
        await asyncio.wait(worker.tasks, timeout=self._patience.stop_s)
        words = " / ".join(worker.group.log.last_words[-SHOWN_WORDS:]) or "nothing"
        return f"{program!r} {what}{worker.complaint}; the last it wrote to standard error: {words}", code is None

    def kill(self, worker: str) -> None:
        """SIGKILL, now."""
        if self.is_living(worker):
            self._workers[worker].expected_end = "killed"
            self._workers[worker].group.signal(signal.SIGKILL)
            self._record(WorkerEnded(worker=worker, how="killed"))

    def stop(self, worker: str, for_s: float | None) -> None:
        """SIGSTOP, until resumed or for ``for_s`` seconds."""
        if not self.is_running(worker):
            return
        stopped = self._workers[worker]
        stopped.stopped = True
        stopped.stops += 1
        stopped.group.signal(signal.SIGSTOP)
        self._record(WorkerStopped(worker=worker))
        if for_s is not None:
            asyncio.get_running_loop().call_later(for_s, self._resume_life, stopped)

    def resume(self, worker: str) -> None:
        """SIGCONT."""
        if self.is_living(worker):
            self._resume_life(self._workers[worker])

    def _resume_life(self, worker: _Worker) -> None:
        if worker.stopped and not worker.ended and worker.expected_end is None:
            worker.stopped = False
            self._record(WorkerResumed(worker=worker.name))
            worker.group.signal(signal.SIGCONT)

    def is_living(self, worker: str) -> bool:
        """Tell whether the process was started and has not been ended."""
        found = self._workers.get(worker)
        return found is not None and not found.ended and found.expected_end is None

    def is_running(self, worker: str) -> bool:
        """Tell whether the worker lives and is not stopped."""
        return self.is_living(worker) and not self._workers[worker].stopped

    # -- what workers are told and asked

    async def command(
        self, worker: str, command: str, operation: str, arguments: Mapping[str, Any]
    ) -> asyncio.Future[Any]:
        """Hand a command over; its reply is written down when it comes."""
        told = _COMMANDS[command](id=self._new_id(), operation=operation, **arguments)
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(self._commanded(self._workers[worker], command, operation, told, done))
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return done

    async def _commanded(
        self, worker: _Worker, command: str, operation: str, told: Command, done: asyncio.Future[Any]
    ) -> None:
        reply = await self._ask_undisturbed(
            worker, f"{command} command for {operation}", told, self._patience.command_s
        )
        if reply is None:
            return  # the worker is gone; nobody knows whether it took the command
        done.set_result(None)
        if not reply.ok:
            reason = reply.error or "no reason given"
            fact = CommandRefused(worker=worker.name, command=command, operation=operation, reason=reason)
            self._notebook.write(worker.name, "reply", fact)

    async def report(self, worker: str) -> Sequence[Claim]:
        """Ask for claims; none when the worker ends or is stopped before it answers."""
        told = self._workers[worker]
        reply = await self._ask_undisturbed(told, "report command", Report(id=self._new_id()), self._patience.reply_s)
        self._raise_if_broken()
        return reply.claims if reply is not None else ()

    async def deliver(self, attempt: Attempt) -> int | None:
        """POST a delivery to the first living worker that takes webhooks, one that runs if there is one."""
        takers = [name for name in sorted(self._workers) if self.is_living(name) and self._workers[name].webhook_url]
        takers.sort(key=lambda name: not self.is_running(name))
        if not takers:
            return None
        attempt.worker = takers[0]
        url = self._workers[takers[0]].webhook_url
        assert url is not None
        try:
            answer = await self._http.post(url, content=attempt.body, headers=dict(attempt.headers))
        except (httpx2.TransportError, httpx2.InvalidURL):
            return None
        return answer.status_code

    async def close(self, *, at_once: bool = False) -> None:
        """End all workers and remove what they kept.

        Args:
            at_once: kill them; else those that live are asked to stop first.
        """
        everyone = [*self._gone, *self._workers.values()]
        if at_once:
            for worker in everyone:
                worker.expected_end = worker.expected_end or "killed"
                worker.group.signal(signal.SIGKILL)
        try:
            await asyncio.gather(*(self._end(worker) for worker in everyone))
        finally:
            for task in [*self._background, *(task for worker in everyone for task in worker.tasks)]:
                task.cancel()
            # Also if this is interrupted while they are asked to stop.
            await asyncio.gather(*(worker.group.end() for worker in everyone))
            if "_http" in vars(self):
                await self._http.aclose()
            await self._give_back()

    async def _end(self, worker: _Worker) -> None:
        if not worker.ended and worker.expected_end is None:
            worker.expected_end = "stopped"
            if worker.stopped:
                worker.group.signal(signal.SIGCONT)
            await self._ask(worker, Stop(id=self._new_id()), self._patience.stop_s)
            await asyncio.wait({worker.tasks[-1]}, timeout=self._patience.stop_s)
        worker.group.signal(signal.SIGKILL)  # children that outlived their parent hold its pipes open
        await asyncio.wait(worker.tasks, timeout=self._patience.stop_s)

    # -- subjects that are out of order

    def _end_flood(self, worker: _Worker, why: str) -> None:
        """A worker that writes what nobody can read is ended, and the run with it."""
        self._break(f"{worker.name} {why}, and was ended")
        worker.expected_end = "killed"
        worker.group.signal(signal.SIGKILL)

    def _complain(self, worker: _Worker, message: str) -> None:
        worker.bad_lines += 1
        worker.complaint = f"; {message}"
        self._notebook.write(worker.name, "reply", SubjectComplained(worker=worker.name, message=message))
        if worker.bad_lines >= MAX_BAD_LINES:
            self._end_flood(worker, f"wrote {MAX_BAD_LINES} lines that are not of the protocol, the last: {message}")

    # -- lines

    def _new_id(self) -> int:
        self._next_id += 1
        return self._next_id

    async def _ask(self, told: _Worker, command: Command, timeout_s: float) -> Reply | None:
        """Send a command and return its reply, or None if the worker ends or the time runs out first."""
        if told.ended:
            return None
        future = told.replies[command.id] = asyncio.get_running_loop().create_future()
        told.send(write_line(command))
        try:
            await asyncio.wait({future}, timeout=timeout_s)
        finally:
            told.replies.pop(command.id, None)
        return future.result() if future.done() and not future.cancelled() else None

    async def _ask_undisturbed(self, told: _Worker, what: str, command: Command, timeout_s: float) -> Reply | None:
        """Send a command. A worker that nobody disturbs and that does not reply hangs, and the run ends."""
        stops = told.stops + told.stopped
        if told.stopped:
            timeout_s *= 2  # whoever is stopped gets its time after it was resumed
        reply = await self._ask(told, command, timeout_s)
        if reply is None and not told.ended and told.expected_end is None and told.stops == stops:
            self._break(f"{told.name} hangs: no reply to the {what} within {timeout_s:g} s{told.complaint}")
        return reply

    async def _read_output(self, worker: _Worker) -> None:
        stream = worker.group.process.stdout
        assert stream is not None
        number = size = 0
        while True:
            try:
                line = await stream.readline()
            except ValueError:  # longer than the limit
                self._end_flood(worker, f"wrote a line (number {number + 1}) of more than {MAX_LINE_BYTES} bytes")
                return
            number += 1
            size += len(line)
            if not line:
                return
            if size > MAX_OUTPUT_BYTES:
                self._end_flood(worker, f"wrote more than {MAX_OUTPUT_BYTES} bytes to its standard output")
                return
            if line.strip():
                self._hear(worker, number, line)
            if worker.bad_lines >= MAX_BAD_LINES:
                return
            if number % 100 == 0:
                await asyncio.sleep(0)  # a buffer full of lines is no reason to keep others waiting

    def _hear(self, worker: _Worker, number: int, line: bytes) -> None:
        try:
            said = read_line(line)
        except BadLine as error:
            self._complain(worker, f"line {number} of its standard output: {error}")
            return
        if isinstance(said, NoteLine):
            # What a killed worker wrote before the signal arrived did happen, but no fault can strike it any more.
            refusal = self._notebook.take(worker.name, said.note, striking=worker.expected_end is None)
            if said.checkpoint is not None:
                worker.send(write_line(Go(checkpoint=said.checkpoint, refuse=refusal)))
            return
        future = worker.replies.get(said.reply)
        if future is None and 0 < said.reply <= self._next_id:
            return  # too late: the command was given up
        if future is None or future.done():
            self._complain(
                worker,
                f"line {number} of its standard output: a reply to command {said.reply}, which "
                "was never given or has its reply",
            )
        else:
            future.set_result(said)

    async def _await_end(self, worker: _Worker) -> None:
        code = await worker.group.ended()
        # What it wrote before it ended comes before its end. Its children may hold the pipes open: not for ever.
        await asyncio.wait(worker.tasks[:1], timeout=1)
        await worker.group.log_is_read(1)
        worker.ended = True
        if worker.expected_end is None:
            last = worker.group.log.last_line
            detail = f"{status_of(code)}; last words: {last}" if last else status_of(code)
            ended = WorkerEnded(worker=worker.name, how="crashed", detail=detail)
            self._notebook.write(worker.name, "log", ended)
        self._record(ProcessReaped(worker=worker.name, status=status_of(code)))
        for future in worker.replies.values():
            if not future.done():
                future.cancel()
