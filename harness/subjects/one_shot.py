"""One-shot commands: the least that a client must be to be put under test.

The client is a program that is run once for each operation and sees it through. What it needs is in its environment;
what it says is the last line of its output and its exit status, which ``endings`` reads. A worker is the machine it
runs on: killing the worker kills the programs that run there, and when it is started again they are run again, on the
same state directory.
"""

import asyncio
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from fake_provider.webhooks import Attempt
from harness.history import (
    CommandRefused,
    ProcessReaped,
    WorkerEnded,
    WorkerResumed,
    WorkerStarted,
    WorkerStopped,
)
from harness.stage import Notebook, SubjectBroken, SubjectError, Terms
from harness.subject import Claim
from harness.subjects.endings import Refusal, Unclear, read_claim
from harness.subjects.groups import MAX_OUTPUT_BYTES, Group, status_of
from harness.subjects.programs import ProgramStage

__all__ = ["OneShotStage"]

MAX_LINE_BYTES: Final = 1 << 16
"""The longest last line."""

_CHUNK: Final = 1 << 16


class _Machine:
    """One worker: where programs run."""

    def __init__(self) -> None:
        self.life = 0
        self.alive = False
        self.stopped = False
        self.groups: set[Group] = set()

    def lives(self, life: int) -> bool:
        """Tell whether it is on, and was not switched off since that life began."""
        return self.alive and self.life == life

    def signal(self, number: signal.Signals) -> None:
        for group in self.groups:
            group.signal(number)


class OneShotStage(ProgramStage):
    """Machines that run one program for each operation, all with one state directory."""

    def __init__(self, command: Sequence[str], *, terms: Terms, notebook: Notebook) -> None:
        super().__init__(command, terms=terms, notebook=notebook)
        self._machines: dict[str, _Machine] = {}
        self._turns: dict[str, asyncio.Lock] = {}  # by operation: one program at a time
        self._claims: dict[str, Claim] = {}
        self._runs: dict[asyncio.Task[None], tuple[str, str]] = {}  # worker and operation
        self._ran = 0
        self._state_dir = self._home / "state"
        self._state_dir.mkdir()
        self._contract = self._home / "contract.json"
        self._contract.write_bytes(msgspec.json.encode(terms.contract))

    # -- hosts

    async def start(self, worker: str) -> None:
        """Switch a machine on. What ran there is run again when it is told so again."""
        self._raise_if_broken()
        await self._url_for(worker)
        machine = self._machines.setdefault(worker, _Machine())
        if machine.alive:
            raise ValueError(f"{worker} is running already")
        machine.life += 1
        machine.alive, machine.stopped = True, False
        self._record(WorkerStarted(worker=worker, life=machine.life))

    def kill(self, worker: str) -> None:
        """SIGKILL everything that runs there, now."""
        if self.is_living(worker):
            machine = self._machines[worker]
            machine.alive = False
            machine.signal(signal.SIGKILL)
            self._record(WorkerEnded(worker=worker, how="killed"))

    def stop(self, worker: str, for_s: float | None) -> None:
        """SIGSTOP everything that runs there, until resumed or for ``for_s`` seconds."""
        if not self.is_running(worker):
            return
        machine = self._machines[worker]
        machine.stopped = True
        machine.signal(signal.SIGSTOP)
        self._record(WorkerStopped(worker=worker))
        if for_s is not None:
            asyncio.get_running_loop().call_later(for_s, self._resume_life, worker, machine.life)

    def resume(self, worker: str) -> None:
        """SIGCONT."""
        if self.is_living(worker):
            self._resume_life(worker, self._machines[worker].life)

    def _resume_life(self, worker: str, life: int) -> None:
        machine = self._machines[worker]
        if machine.alive and machine.stopped and machine.life == life:
            machine.stopped = False
            self._record(WorkerResumed(worker=worker))
            machine.signal(signal.SIGCONT)

    def is_living(self, worker: str) -> bool:
        """Tell whether the machine is on."""
        return worker in self._machines and self._machines[worker].alive

    def is_running(self, worker: str) -> bool:
        """Tell whether the machine is on and not stopped."""
        return self.is_living(worker) and not self._machines[worker].stopped

    # -- what workers are told and asked

    async def command(
        self, worker: str, command: str, operation: str, arguments: Mapping[str, Any]
    ) -> asyncio.Future[Any]:
        """Run the program for an operation, after any that runs for it already.

        Returns:
            a future that is done once the program has ended with a claim or a refusal.
        """
        assert command == "submit", "a scenario with other commands does not apply to a one-shot command"
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._ran += 1
        request = self._home / f"{operation}.{self._ran}.json"
        request.write_bytes(msgspec.json.encode(arguments["request"]))
        task = asyncio.create_task(self._see_through(worker, operation, request, done))
        self._runs[task] = (worker, operation)
        task.add_done_callback(self._runs.pop)
        return done

    async def report(self, worker: str) -> Sequence[Claim]:
        """Return what was claimed of each operation for which no program runs any more."""
        self._raise_if_broken()
        busy = {operation for at, operation in self._runs.values() if at == worker}
        return [claim for operation, claim in self._claims.items() if operation not in busy]

    async def deliver(self, attempt: Attempt) -> int | None:  # noqa: ARG002
        """Nobody takes webhooks here."""
        return None

    async def close(self, *, at_once: bool = False) -> None:  # noqa: ARG002  a program knows no other end
        """Kill what still runs, and remove what was kept."""
        for machine in self._machines.values():
            machine.signal(signal.SIGKILL)
        for task in self._runs:
            task.cancel()
        try:
            if self._runs:
                await asyncio.wait(list(self._runs))
        finally:
            await self._give_back()

    # -- inside

    async def _see_through(self, worker: str, operation: str, request: Path, done: asyncio.Future[Any]) -> None:
        """Run the program until it is done, as a scheduler would."""
        machine, life = self._machines[worker], self._machines[worker].life
        async with self._turns.setdefault(operation, asyncio.Lock()):
            while machine.lives(life):
                try:
                    said = await self._run(worker, machine, operation, request)
                except (SubjectBroken, SubjectError, Unclear) as error:
                    self._break(f"{operation}: {error}")
                    return
                if not machine.lives(life):
                    return  # it was killed; whatever it said, nobody was there to hear
                if said is None:
                    await asyncio.sleep(self._terms.timing["poll_first_s"])
                    continue
                if isinstance(said, Refusal):
                    fact = CommandRefused(worker=worker, command="submit", operation=operation, reason=said.reason)
                    self._notebook.write(worker, "reply", fact)
                else:
                    self._claims[operation] = said
                done.set_result(None)
                return

    async def _run(self, worker: str, machine: _Machine, operation: str, request: Path) -> Claim | Refusal | None:
        """Run the program once."""
        log = self._new_log(f"{worker}-{operation}-{len(self.logs) + 1}", worker)
        group = await Group.start(self._command, self._environment(worker, operation, request), log=log)
        machine.groups.add(group)
        try:
            if not machine.alive:
                group.signal(signal.SIGKILL)
            elif machine.stopped:
                group.signal(signal.SIGSTOP)
            line = await self._read_last_line(group)
            code = await group.ended()
            await group.log_is_read(1)
        finally:
            await asyncio.shield(group.end())
            machine.groups.discard(group)
        self._record(ProcessReaped(worker=worker, status=status_of(code)))
        return read_claim(operation, line, code, log.last_line) if machine.alive else None

    async def _read_last_line(self, group: Group) -> str:
        assert group.process.stdout is not None
        total, tail = 0, b""
        ended = asyncio.ensure_future(group.ended())
        while True:
            reading = asyncio.ensure_future(group.process.stdout.read(_CHUNK))
            await asyncio.wait({reading, ended}, return_when=asyncio.FIRST_COMPLETED)
            if not reading.done():  # it has ended; a child of it may hold the pipe open for ever
                await asyncio.wait({reading}, timeout=1)
            if not reading.done():
                reading.cancel()
                break
            data = reading.result()
            if not data:
                break
            total += len(data)
            tail = (tail + data)[-MAX_LINE_BYTES:]
            if total > MAX_OUTPUT_BYTES:
                raise SubjectBroken(
                    f"it wrote more than {MAX_OUTPUT_BYTES} bytes to its standard output, and was ended"
                )
        lines = [line.strip() for line in tail.decode("utf-8", "replace").splitlines()]
        return next((line for line in reversed(lines) if line), "")

    def _environment(self, worker: str, operation: str, request: Path) -> dict[str, str]:
        return {
            "PROVIDER_URL": self._urls[worker],
            "OPERATION_ID": operation,
            "REQUEST_FILE": str(request),
            "STATE_DIR": str(self._state_dir),
            "CONTRACT_FILE": str(self._contract),
            "JOBSWORTH_AUTHORIZATION": self._terms.authorization,
            **{name.upper(): f"{value:g}" for name, value in self._terms.timing.items()},
        }
