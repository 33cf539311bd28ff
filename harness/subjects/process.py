"""The process stage: workers are operating-system processes, on real sockets and in real time.

Each worker leads a process group of its own, has a port of its own at the provider (so that the history knows who
called), and speaks the session protocol of ``lines``. Kill and stop are SIGKILL and SIGSTOP to the whole group.
Nothing is left behind.
"""

import asyncio
import contextlib
import os
import shutil
import signal
import tempfile
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import httpx2

from fake_provider.engine import Engine
from fake_provider.server import Server
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
from harness.subject import Claim
from harness.subjects.lines import PROTOCOL, BadLine, NoteLine, Reply, command_line, go_line, read_line

__all__ = ["ProcessStage"]

MAX_LINE_BYTES: Final = 1 << 20
"""A claim for some thousand operations fits; a subject that writes more on one line is out of order."""

MAX_BAD_LINES: Final = 20
"""After this many lines that are not of the protocol, no more are written down."""

START_S: Final = 20.0
"""For a slow language runtime to come up on a busy machine."""

REPLY_S: Final = 5.0
"""For a running worker to answer; longer than any request time-out that a scenario sets."""

STOP_S: Final = 3.0
"""For a worker to end in good order once asked."""

LAST_WORDS: Final = 20  # lines of standard error that are kept


class _Worker:
    """One start of a worker: its process and what is awaited from it."""

    def __init__(self, name: str, life: int, process: Process) -> None:
        self.name = name
        self.life = life
        self.process = process
        self.stopped = False
        self.expected_end: str | None = None  # how it is about to end, when we know
        self.ended = False
        self.webhook_url: str | None = None
        self.replies: dict[int, asyncio.Future[Reply]] = {}
        self.last_words: deque[str] = deque(maxlen=LAST_WORDS)
        self.tasks: list[asyncio.Task[None]] = []
        self.bad_lines = 0

    def signal_group(self, number: signal.Signals) -> None:
        """Send a signal to the process and all its children."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def send(self, line: bytes) -> None:
        """Write to its standard input; a worker that is gone takes nothing."""
        assert self.process.stdin is not None
        with contextlib.suppress(ConnectionError, RuntimeError):
            self.process.stdin.write(line)


class ProcessStage:
    """Processes of one command, all with one state directory."""

    def __init__(self, command: Sequence[str], *, terms: Terms, notebook: Notebook) -> None:
        self._command = tuple(command)
        self._server: Server | None = None
        self._terms = terms
        self._notebook = notebook
        self._record = notebook.record
        self._workers: dict[str, _Worker] = {}
        self._lives: dict[str, int] = {}
        self._next_id = 0
        self._state_dir = Path(tempfile.mkdtemp(prefix="jobsworth-"))
        self._http = httpx2.AsyncClient(timeout=None, trust_env=False)
        self._background: set[asyncio.Task[None]] = set()
        self._urls: dict[str, str] = {}

    def attach(self, engine: Engine) -> None:
        """Put the engine on real sockets."""
        self._server = Server(engine)

    # -- hosts

    async def start(self, worker: str) -> None:
        """Start a worker's process, for the first time or again."""
        if self.is_living(worker):
            raise ValueError(f"{worker} is running already")
        life = self._lives[worker] = self._lives.get(worker, 0) + 1
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                start_new_session=True,
                limit=MAX_LINE_BYTES,
                env={**os.environ, "JOBSWORTH_AUTHORIZATION": self._terms.authorization},
            )
        except OSError as error:
            raise SubjectError(f"cannot start {self._command[0]!r}: {error.strerror}") from None
        started = self._workers[worker] = _Worker(worker, life, process)
        started.tasks = [
            asyncio.create_task(self._read_output(started)),
            asyncio.create_task(self._read_log(started)),
            asyncio.create_task(self._await_end(started)),
        ]
        assert self._server is not None
        if worker not in self._urls:
            self._urls[worker] = await self._server.open_port(worker)
        reply = await self._ask(
            started,
            "start",
            START_S,
            protocol=PROTOCOL,
            worker=worker,
            base_url=self._urls[worker],
            state_dir=str(self._state_dir),
            contract=self._terms.contract,
            timing=self._terms.timing,
            webhook_secrets=self._terms.webhook_secrets,
            checkpoints=True,
            seed=self._terms.seed,
        )
        if reply is None or not reply.ok or reply.protocol != PROTOCOL:
            raise SubjectError(await self._why_not_up(started, reply))
        self._record(WorkerStarted(worker=worker, life=life))
        if "webhooks" in reply.capabilities:
            answer = await self._ask(started, "webhook_url", REPLY_S)
            started.webhook_url = answer.url if answer is not None else None

    async def _why_not_up(self, worker: _Worker, reply: Reply | None) -> str:
        if reply is not None and not reply.ok:
            return f"{self._command[0]!r} refused to start: {reply.error}"
        if reply is not None:
            return f"{self._command[0]!r} speaks protocol {reply.protocol}, this harness speaks {PROTOCOL}"
        if worker.process.returncode is None:
            worker.signal_group(signal.SIGKILL)
            what = f"did not answer the start command within {START_S:g} s"
        else:
            what = f"ended at once with exit status {worker.process.returncode}"
        await asyncio.wait(worker.tasks, timeout=STOP_S)
        words = "\n".join(f"    {line}" for line in worker.last_words) or "    (nothing)"
        return f"{' '.join(self._command)!r} {what}; the last it wrote to standard error:\n{words}"

    def kill(self, worker: str) -> None:
        """SIGKILL, now."""
        if self.is_living(worker):
            self._workers[worker].expected_end = "killed"
            self._workers[worker].signal_group(signal.SIGKILL)
            self._record(WorkerEnded(worker=worker, how="killed"))

    def stop(self, worker: str, for_s: float | None) -> None:
        """SIGSTOP, until resumed or for ``for_s`` seconds."""
        if not self.is_running(worker):
            return
        stopped = self._workers[worker]
        stopped.stopped = True
        stopped.signal_group(signal.SIGSTOP)
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
            worker.signal_group(signal.SIGCONT)

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
        told = self._workers[worker]
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(self._commanded(told, command, operation, dict(arguments), done))
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return done

    async def _commanded(
        self, worker: _Worker, command: str, operation: str, arguments: dict[str, Any], done: asyncio.Future[Any]
    ) -> None:
        reply = await self._ask(worker, command, None, operation=operation, **arguments)
        if reply is None:
            return  # the worker is gone; nobody knows whether it took the command
        done.set_result(None)
        if not reply.ok:
            reason = reply.error or "no reason given"
            fact = CommandRefused(worker=worker.name, command=command, operation=operation, reason=reason)
            self._notebook.write(worker.name, "reply", fact)

    async def report(self, worker: str) -> Sequence[Claim]:
        """Ask for claims; none when the worker does not answer in time."""
        reply = await self._ask(self._workers[worker], "report", REPLY_S)
        if reply is None and self.is_running(worker):
            message = f"no reply to the report command within {REPLY_S:g} s"
            self._record(SubjectComplained(worker=worker, message=message))
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
        except httpx2.TransportError:
            return None
        return answer.status_code

    async def settle(self) -> None:
        """In real time nobody can tell."""

    async def close(self) -> None:
        """Ask living workers to stop, end those that do not, and remove what they kept."""
        try:
            await asyncio.gather(*(self._end(worker) for worker in self._workers.values()))
        finally:
            for worker in self._workers.values():
                worker.signal_group(signal.SIGKILL)  # children that outlived their parent
            for task in [*self._background, *(task for worker in self._workers.values() for task in worker.tasks)]:
                task.cancel()
            await self._http.aclose()
            if self._server is not None:
                await self._server.close()
            shutil.rmtree(self._state_dir, ignore_errors=True)

    async def _end(self, worker: _Worker) -> None:
        if not worker.ended and worker.expected_end is None:
            worker.expected_end = "stopped"
            if worker.stopped:
                worker.signal_group(signal.SIGCONT)
            await self._ask(worker, "stop", STOP_S)
        if worker.expected_end == "stopped":
            await asyncio.wait({worker.tasks[-1]}, timeout=STOP_S)
        if not worker.ended:
            worker.signal_group(signal.SIGKILL)
        await asyncio.wait(worker.tasks, timeout=STOP_S)
        # The transport holds the pipes; without this they are closed by the collector, with a warning.
        worker.process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001

    # -- lines

    async def _ask(self, told: _Worker, command: str, timeout_s: float | None, /, **arguments: Any) -> Reply | None:
        """Send a command and return its reply, or None if the worker ends or the time runs out first."""
        if told.ended:
            return None
        self._next_id += 1
        number = self._next_id
        future = told.replies[number] = asyncio.get_running_loop().create_future()
        told.send(command_line(command, number, **arguments))
        await asyncio.wait({future}, timeout=timeout_s)
        told.replies.pop(number, None)
        return future.result() if future.done() and not future.cancelled() else None

    async def _read_output(self, worker: _Worker) -> None:
        assert worker.process.stdout is not None
        number = 0
        while True:
            try:
                line = await worker.process.stdout.readline()
            except ValueError:  # longer than the limit
                self._complain(worker, f"line {number + 1} is longer than {MAX_LINE_BYTES} bytes")
                worker.signal_group(signal.SIGKILL)
                return
            if not line:
                return
            number += 1
            if not line.strip():
                continue
            try:
                self._take(worker, read_line(line))
            except BadLine as error:
                self._complain(worker, f"line {number} of its standard output: {error}")

    def _take(self, worker: _Worker, said: Reply | NoteLine) -> None:
        if isinstance(said, Reply):
            future = worker.replies.get(said.reply)
            if future is None or future.done():
                self._complain(worker, f"a reply to command {said.reply}, which awaits none")
            else:
                future.set_result(said)
            return
        # What a killed worker wrote before the signal arrived did happen, but no fault can strike it any more.
        refusal = self._notebook.take(worker.name, said.note, striking=worker.expected_end is None)
        if said.checkpoint is not None:
            worker.send(go_line(said.checkpoint, refusal))

    def _complain(self, worker: _Worker, message: str) -> None:
        worker.bad_lines += 1
        if worker.bad_lines <= MAX_BAD_LINES:
            self._notebook.write(worker.name, "reply", SubjectComplained(worker=worker.name, message=message))

    async def _read_log(self, worker: _Worker) -> None:
        assert worker.process.stderr is not None
        while True:
            try:
                line = await worker.process.stderr.readline()
            except ValueError:
                continue  # an overlong log line is dropped in pieces
            if not line:
                return
            worker.last_words.append(line.decode("utf-8", "replace").rstrip()[:500])

    async def _await_end(self, worker: _Worker) -> None:
        code = await worker.process.wait()
        # What it wrote before it ended comes before its end. Its children may hold the pipes open: not for ever.
        await asyncio.wait(worker.tasks[:2], timeout=1)
        worker.ended = True
        status = f"signal {-code}" if code < 0 else f"exit status {code}"
        if worker.expected_end is None:
            detail = f"{status}; last words: {worker.last_words[-1]}" if worker.last_words else status
            ended = WorkerEnded(worker=worker.name, how="crashed", detail=detail)
            self._notebook.write(worker.name, "log", ended)
        self._record(ProcessReaped(worker=worker.name, status=status))
        for future in worker.replies.values():
            if not future.done():
                future.cancel()
