"""The course of one run: start, drive, strike, heal, drain, report. The same for every way to run a subject.

A course applies steps to a stage and to the provider, and records what it did. It does not know what the subject is,
nor whether time is real. It judges nothing: the judge looks on through the history, and ``conclude`` adds up what the
run came to.
"""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, assert_never

from fake_provider.books import ControlError
from fake_provider.boundary import Boundary
from fake_provider.clock import Clock
from fake_provider.facts import RequestSent, credential_digest, digest
from harness.expectations import broken_expectations
from harness.history import (
    ClockSet,
    Commanded,
    CommandRefused,
    Entry,
    History,
    LedgerRead,
    RunEnded,
    RunStarted,
    WorkerEnded,
    WorkerStarted,
)
from harness.rules.judge import Judge, Judgement
from harness.stage import Notebook, Stage, Terms
from harness.subject import Claim
from harness.verdict import Finding, Outcome, decide
from scenarios.model import (
    Arm,
    Cancel,
    Complete,
    Decide,
    Fail,
    Heal,
    Kill,
    Reconcile,
    Resume,
    Scenario,
    SetClock,
    Start,
    Step,
    Stop,
    Submit,
    Wait,
)

__all__ = ["Course"]

_REST_CHECK_S: Final = {"simulated": 1.0, "patched": 1.0, "process": 0.1}
"""How often the workers are asked whether all is at rest. Virtual seconds cost nothing; real ones are waited for."""

_START_CHECK_S: Final = 0.01

_WITHOUT_JOB: Final = frozenset({"create_pending", "create_unknown", "reconciliation", "withdrawn"})
"""What is decided of an operation that has no job, or whose job is yet to be found."""


class Course:
    """One run, step by step.

    Args:
        scenario: the story. Its ``steps`` are not applied by themselves: the runner, or an explorer, applies them.
        now: seconds since the run started.
    """

    def __init__(
        self,
        scenario: Scenario,
        *,
        mode: str,
        seed: int,
        terms: Terms,
        origin: str,
        stage: Stage,
        boundary: Boundary,
        history: History,
        notebook: Notebook,
        judge: Judge,
        clock: Clock,
        now: Callable[[], float],
    ) -> None:
        self.scenario = scenario
        self.mode = mode
        self.seed = seed
        self.history = history
        self.judge = judge
        self.boundary = boundary
        self.stage = stage
        self.now = now
        self._terms = terms
        self._origin = origin
        self._notebook = notebook
        self._clock = clock
        self._requests: dict[str, str] = {}  # operation -> fingerprint of the first request for it
        self._given: set[tuple[str, str]] = set()  # commands given, by operation
        self._lives: dict[str, int] = {}  # of each worker, the one it is in
        self._open: dict[tuple[str, str], _Given] = {}  # the last of each
        self._starting: dict[str, asyncio.Future[Any]] = {}  # by operation: told to a client that has not called yet
        self._claims: list[Claim] = []  # as reported last
        self._said: dict[tuple[str, str], Claim] = {}  # by worker and operation: what was written down last
        self._refused: set[str] = set()  # operations of which a command was refused
        self._wrong_clocks: set[str] = set()  # of workers
        self._doubts: list[str] = []
        self._called = False
        self._crash: str | None = None  # of the worker that crashed last
        history.observe(self._watch)

    # -- start and drive

    async def start(self) -> None:
        """Open the history and bring the workers up."""
        self.history.record(
            RunStarted(
                scenario=self.scenario.name,
                mode=self.mode,
                seed=self.seed,
                contract=dict(self._terms.contract),
                timing=dict(self._terms.timing),
                credential=credential_digest(self._terms.authorization),
                origin=self._origin,
            )
        )
        for worker in self.scenario.worker_ids:
            await self.stage.start(worker)
        await self.stage.settle()

    async def advance_to(self, at: float) -> None:
        """Let time pass until ``at`` seconds after the start."""
        delay = at - self.now()
        if delay > 0:
            await asyncio.sleep(delay)
        await self.stage.settle()

    async def await_start(self, within_s: float) -> float:
        """Wait until what was told last has come up, where each command starts a program: it calls, or it is done.

        Returns:
            how long that took. The story's clock stands still meanwhile: how fast a program starts is no part of it.
        """
        began = self.now()
        while self._first_worker() is not None and self.now() < began + within_s:
            self._starting = {name: done for name, done in self._starting.items() if not done.done()}
            if not self._starting:
                break
            await self.advance_to(self.now() + _START_CHECK_S)
        self._starting.clear()
        return self.now() - began

    async def apply(self, step: Step) -> None:
        """Do one step of a story at this moment. A step that has no object (no worker to kill) is a doubt, not an
        error.
        """
        match step:
            case Submit():
                await self._submit(step)
            case Cancel() | Reconcile():
                await self._command(_Order(step.do, step.operation, {"who": step.who, "why": step.why}), step.worker)
            case Decide():
                decided = {"state": step.state, "job": self._job_found(step)}
                order = _Order(step.do, step.operation, {"who": step.who, "why": step.why, **decided})
                await self._command(order, step.worker)
            case Start():
                if self.stage.is_living(step.worker):
                    self.doubt(step, f"{step.worker} is living already")
                else:
                    await self._start_again(step.worker)
            case Kill() | Stop() | Resume():
                self._treat_worker(step)
            case SetClock():
                self.stage.set_clock(step.worker, step.ahead_s)
            case Complete() | Fail():
                self._end_job(step)
            case Arm():
                self.boundary.plan.arm(step.fault)
            case Heal():
                self.boundary.plan.heal()
                self._set_clocks_right()
            case Wait():
                pass  # the time has passed already
            case _:
                assert_never(step)
        await self.stage.settle()

    def doubt(self, step: Step, why: str) -> None:
        """Note that a step could not be taken: a run without it proves nothing."""
        self._doubts.append(f"step {step.do} at {step.at:g} s: {why}")

    def _end_job(self, step: Complete | Fail) -> None:
        now = self._clock.now()
        try:
            if isinstance(step, Complete):
                self.boundary.complete(step.operation, now)
            else:
                self.boundary.fail(step.operation, now, step.error)
        except ControlError as error:
            self.doubt(step, str(error))

    def _treat_worker(self, step: Kill | Stop | Resume) -> None:
        if not self.stage.is_living(step.worker):
            self.doubt(step, f"{step.worker} is not living")
        elif isinstance(step, Kill):
            self.stage.kill(step.worker)
        elif isinstance(step, Stop):
            self.stage.stop(step.worker, None)
        else:
            self.stage.resume(step.worker)

    # -- commands

    async def _submit(self, step: Submit) -> None:
        fingerprint = _fingerprint(step)
        first = self._requests.setdefault(step.operation, fingerprint)
        order = _Order("submit", step.operation, {"request": step.request}, fingerprint, changed=fingerprint != first)
        await self._command(order, step.worker)

    async def _command(self, order: "_Order", worker: str | None = None) -> None:
        told = worker or self._first_worker()
        if told is None or not self.stage.is_living(told):
            self._doubts.append(f"{order.command} {order.operation}: no living worker to tell")
            return
        key = (order.command, order.operation)
        self.history.record(
            Commanded(
                command=order.command,
                operation=order.operation,
                worker=told,
                fingerprint=order.fingerprint,
                repeat_of=key in self._given and not order.changed,
                changed=order.changed,
                decided=order.arguments.get("state"),
            )
        )
        self._given.add(key)
        busy = key in self._open and not self._open[key].done.done()
        done = await self.stage.command(told, order.command, order.operation, order.arguments)
        if not busy:
            self._starting[order.operation] = done
        if not order.changed:
            self._open[key] = _Given(order, told, self._lives.get(told, 0), done)

    async def _repeat_lost_commands(self) -> None:
        """Give a command again whose worker died before it took it, as a caller would that got no answer."""
        for given in list(self._open.values()):
            died = not self.stage.is_living(given.worker) or self._lives.get(given.worker) != given.life
            if died and not given.done.done() and self._first_worker() is not None:
                await self._command(given.order)

    def _job_found(self, step: Decide) -> str | None:
        """The job that the person has found at the provider; none where the decision is that there is none."""
        if step.state in _WITHOUT_JOB:
            return None
        jobs = [line.job for line in self.boundary.ledger(self._clock.now()) if line.operation == step.operation]
        return jobs[-1] if jobs else None

    def to_come(self) -> object:
        """What the story still holds, in types of JSON: the commands given and not taken, and the steps that follow."""
        now = self.now()
        waiting = [
            (*key, given.worker, self.stage.is_living(given.worker) and self._lives.get(given.worker) == given.life)
            for key, given in self._open.items()
            if not given.done.done()
        ]
        steps = [
            (
                round(step.at - now, 4),
                step.model_dump(exclude={"at", "parameters"}),
                _fingerprint(step) if isinstance(step, Submit) else None,
            )
            for step in self.scenario.steps
            if step.at >= now
        ]
        return sorted(self._given), waiting, steps

    def _first_worker(self) -> str | None:
        living = [worker for worker in self.scenario.worker_ids if self.stage.is_living(worker)]
        running = [worker for worker in living if self.stage.is_running(worker)]
        return next(iter(running or living), None)

    async def _start_again(self, worker: str) -> None:
        await self.stage.start(worker)
        await self._repeat_lost_commands()

    # -- heal, drain, report

    async def finish(self) -> None:
        """Wait for rest, heal, drain, ask for claims, read the books."""
        if await self._await_rest(self.now() + self._patience_s):
            await self._report()  # what is claimed while things may go wrong must hold as well
        await self._heal()
        healed_at = self.now()
        limit = healed_at + self.scenario.drain_s
        await self._await_rest(limit, dead_workers_end_it=False)
        # What comes after rest comes now: a worker that wakes up late, a webhook that is retried, one poll too many.
        await self.advance_to(self.now() + self.scenario.timing.lease_s)
        # It may have set something in motion again, as a command that was obeyed only now does.
        at_rest = await self._await_rest(limit, dead_workers_end_it=False)
        await self._report()
        for line in self.boundary.ledger(self._clock.now()):
            self.history.record(
                LedgerRead(
                    job=line.job,
                    operation=line.operation,
                    state=line.state,
                    result_sha256=line.result_sha256,
                    records=line.records,
                    failed_items=line.failed_items,
                )
            )
        self.history.record(RunEnded(at_rest=at_rest, drained_s=round(self.now() - healed_at, 6)))

    @property
    def _patience_s(self) -> float:
        """How long an operation may take by its own deadlines: past that, only healing can help."""
        timing = self.scenario.timing
        return timing.create_deadline_s + timing.result_deadline_s + timing.cancel_deadline_s

    async def _heal(self) -> None:
        self.boundary.plan.heal()
        self._set_clocks_right()
        for worker in self.scenario.worker_ids:
            if self.stage.is_living(worker) and not self.stage.is_running(worker):
                self.stage.resume(worker)
        if self._first_worker() is None:
            await self.stage.start(self.scenario.worker_ids[0])
        await self._repeat_lost_commands()
        await self.stage.settle()

    def _set_clocks_right(self) -> None:
        for worker in sorted(self._wrong_clocks):
            self.stage.set_clock(worker, 0)

    async def _await_rest(self, until: float, *, dead_workers_end_it: bool = True) -> bool:
        """Wait until every operation is at rest, but not past ``until``."""
        interval = _REST_CHECK_S[self.mode]
        while True:
            if await self._is_all_at_rest():
                return True
            if self.now() >= until or (dead_workers_end_it and self._first_worker() is None):
                return False
            await self.advance_to(min(until, self.now() + interval))

    async def _is_all_at_rest(self) -> bool:
        waiting = {operation for command, operation in self._given if command == "submit"}
        for worker in self.scenario.worker_ids:
            if self.stage.is_running(worker):
                claims = await self.stage.report(worker)
                if not all(claim.at_rest for claim in claims):
                    return False
                waiting -= {claim.operation for claim in claims}
        return not waiting and all(given.done.done() for given in self._open.values())

    async def _report(self) -> None:
        """Ask every running worker for its claims, and write down what is new."""
        said: dict[Claim, None] = {}
        for worker in self.scenario.worker_ids:
            if self.stage.is_running(worker):
                for claim in await self.stage.report(worker):
                    before = self._said.get((worker, claim.operation))
                    if claim != before and not (before is None and claim in said):  # workers on one store say the same
                        self._said[worker, claim.operation] = claim
                        self._notebook.take_claim(worker, claim)
                    said[claim] = None
        self._claims = list(said)

    # -- what it came to

    def conclude(self, *, reproduce: str, trouble: str | None = None) -> Outcome:
        """Add up what the run came to.

        Args:
            reproduce: the command line that runs this once more.
            trouble: why the run broke off, if it did.
        """
        self._notebook.close()
        self.history.seal()
        judgement = self.judge.conclude()
        # A run that broke off did not come to its end: what should be true there is not judged.
        findings = judgement.findings if trouble else (*judgement.findings, *self._broken_expectations())
        verdict, reason = decide(findings=findings, doubts=self._all_doubts(judgement, trouble))
        if trouble and findings:
            reason = f"{reason}; then the run broke off: {trouble}"
        plan = self.boundary.plan
        return Outcome(
            scenario=self.scenario.name,
            mode=self.mode,
            seed=self.seed,
            verdict=verdict,
            reason=reason,
            rules_judged=len(judgement.judged),
            rules_not_judged=judgement.not_judged,
            faults_planned=plan.planned,
            faults_struck=plan.struck,
            findings=findings,
            history_sha256=self.history.sha256(),
            reproduce=reproduce,
        )

    def _all_doubts(self, judgement: Judgement, trouble: str | None) -> Iterator[str]:
        if trouble is not None:
            yield trouble
            return  # all else that is missing is missing for that
        yield from self._doubts
        for number, fault in self.boundary.plan.unstruck():
            yield f"fault {number} ({fault.kind} at {fault.at}) never struck"
        for rule, error in judgement.crashed:
            yield f"the rule {rule} crashed: {error}"
        if not judgement.judged:
            yield "no rule had anything to judge"
        if self._given and not self._called:
            yield "the subject never called the provider"
        claimed = {claim.operation for claim in self._claims} | self._refused
        for operation in sorted({name for command, name in self._given if command == "submit"} - claimed):
            yield f"{operation} ended as {self._silence(operation)}"

    def _broken_expectations(self) -> Iterator[Finding]:
        return broken_expectations(self.scenario, claims=self._claims, history=self.history, silence=self._silence)

    def _silence(self, operation: str) -> str:
        """Nobody claims anything of an operation: why, as far as that can be told."""
        crash = f" (the client crashed: {self._crash})" if self._crash else ""
        given = self._open.get(("submit", operation))
        busy = " (the client was still busy with it)" if given and not given.done.done() and not crash else ""
        return f"nothing anyone claims{crash}{busy}"

    # -- inside

    def _watch(self, entry: Entry) -> None:
        if isinstance(entry.fact, RequestSent):
            self._called = True
            self._starting.pop(entry.fact.operation or "", None)
        elif isinstance(entry.fact, WorkerStarted):
            self._lives[entry.fact.worker] = entry.fact.life
        elif isinstance(entry.fact, ClockSet):
            (self._wrong_clocks.add if entry.fact.ahead_s else self._wrong_clocks.discard)(entry.fact.worker)
        elif isinstance(entry.fact, CommandRefused):
            self._refused.add(entry.fact.operation)
        elif isinstance(entry.fact, WorkerEnded) and entry.fact.how == "crashed":
            self._crash = entry.fact.detail


@dataclass(frozen=True)
class _Order:
    """Something a worker is told to do."""

    command: str
    operation: str
    arguments: Mapping[str, Any]
    fingerprint: str | None = None
    changed: bool = False


@dataclass(frozen=True)
class _Given:
    """An order as it was given: to which worker, in which of its lives, and whether it took it."""

    order: _Order
    worker: str
    life: int
    done: asyncio.Future[Any]


def _fingerprint(step: Submit) -> str:
    return digest(json.dumps(step.request, sort_keys=True, separators=(",", ":")).encode())
