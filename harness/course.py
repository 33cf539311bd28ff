"""The course of one run: start, drive, strike, heal, drain, report. The same for every way to run a subject.

A course applies steps to a stage and to the provider, and records what it did; what workers are told goes through
``harness.orders``. It does not know what the subject is, nor whether time is real. It judges nothing: the judge looks
on through the history, and ``conclude`` adds up what the run came to.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Final, assert_never

import msgspec

from fake_provider.books import ControlError
from fake_provider.boundary import Boundary
from fake_provider.clock import Clock
from fake_provider.facts import RequestSent, credential_digest
from fake_provider.outlook import comparable_s
from harness.expectations import EXPECTATION, broken_expectations, never_begun
from harness.history import (
    ClockSet,
    CommandRefused,
    Entry,
    History,
    LedgerRead,
    RunEnded,
    RunStarted,
    SubjectComplained,
    WorkerEnded,
)
from harness.orders import Orders, fingerprint_of
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

__all__ = ["REST_CHECK_S", "Course"]

REST_CHECK_S: Final = {"simulated": 1.0, "patched": 1.0, "process": 0.1}
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
        self._claims: list[Claim] = []  # as reported last
        self._said: dict[tuple[str, str], Claim] = {}  # by worker and operation: what was written down last
        self._refused: set[str] = set()  # operations of which a command was refused
        self._wrong_clocks: set[str] = set()  # of workers
        self._doubts: list[str] = []
        self._orders = Orders(stage=stage, workers=scenario.worker_ids, history=history, doubt=self._doubts.append)
        self._called = False
        self._crash: str | None = None  # of the worker that crashed last
        self._complaint: str | None = None  # what was last wrong with what a worker said or did
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
        while self._orders.first_worker() is not None and self.now() < began + within_s:
            if not self._orders.any_coming_up():
                break
            await self.advance_to(self.now() + _START_CHECK_S)
        self._orders.forget_starts()
        return self.now() - began

    async def apply(self, step: Step) -> None:
        """Do one step of a story at this moment. A step that has no object (no worker to kill) is a doubt, not an
        error.
        """
        match step:
            case Submit() | Cancel() | Reconcile():
                await self._orders.give(step)
            case Decide():
                await self._orders.give(step, job=self._job_found(step))
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

    def _job_found(self, step: Decide) -> str | None:
        """The job that the person has found at the provider; none where the decision is that there is none."""
        if step.state in _WITHOUT_JOB:
            return None
        jobs = [line.job for line in self.boundary.ledger(self._clock.now()) if line.operation == step.operation]
        return jobs[-1] if jobs else None

    def to_come(self) -> object:
        """What the story still holds, in types of JSON: the commands given and not taken, and the steps that follow."""
        now = self.now()
        steps = [
            (
                comparable_s(step.at - now),
                step.model_dump(exclude={"at", "parameters"}),
                fingerprint_of(step) if isinstance(step, Submit) else None,
            )
            for step in self.scenario.steps
            if step.at >= now
        ]
        return *self._orders.to_come(), steps

    async def _start_again(self, worker: str) -> None:
        await self.stage.start(worker)
        await self._orders.repeat_lost()

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
            self.history.record(LedgerRead(**msgspec.structs.asdict(line)))
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
        if self._orders.first_worker() is None:
            await self.stage.start(self.scenario.worker_ids[0])
        await self._orders.repeat_lost()
        await self.stage.settle()

    def _set_clocks_right(self) -> None:
        for worker in sorted(self._wrong_clocks):
            self.stage.set_clock(worker, 0)

    async def _await_rest(self, until: float, *, dead_workers_end_it: bool = True) -> bool:
        """Wait until every operation is at rest, but not past ``until``."""
        interval = REST_CHECK_S[self.mode]
        while True:
            if await self._is_all_at_rest():
                return True
            if self.now() >= until or (dead_workers_end_it and self._orders.first_worker() is None):
                return False
            await self.advance_to(min(until, self.now() + interval))

    async def _is_all_at_rest(self) -> bool:
        waiting = set(self._orders.submitted)
        for worker in self.scenario.worker_ids:
            if self.stage.is_running(worker):
                claims = await self.stage.report(worker)
                if not all(claim.at_rest for claim in claims):
                    return False
                waiting -= {claim.operation for claim in claims}
        return not waiting and self._orders.all_taken

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
        doubts = tuple(self._all_doubts(judgement, trouble, findings))
        verdict, reason = decide(findings=findings, doubts=doubts)
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
            doubts=doubts,
            history_sha256=self.history.sha256(),
            reproduce=reproduce,
        )

    def _all_doubts(self, judgement: Judgement, trouble: str | None, findings: Sequence[Finding]) -> Iterator[str]:
        if trouble is not None:
            yield trouble
            return  # all else that is missing is missing for that
        yield from self._doubts
        for operation in never_begun(self.scenario, claims=self._claims, history=self.history):
            yield f"{operation} was withdrawn before anything was sent, so that its story did not come about"
        for number, fault in self.boundary.plan.unstruck():
            yield f"fault {number} ({fault.kind} at {fault.at}) never struck"
        for rule, error in judgement.crashed:
            yield f"the rule {rule} crashed: {error}"
        if not judgement.judged:
            yield "no rule had anything to judge"
        if self._orders.any_given and not self._called:
            yield "the subject never called the provider"
        claimed = {claim.operation for claim in self._claims} | self._refused
        silent = self._orders.submitted - claimed
        if any(finding.rule == EXPECTATION for finding in findings):
            silent -= self.scenario.ends.keys()  # that nobody claims anything of them is a finding
        for operation in sorted(silent):
            yield f"{operation} ended as {self._silence(operation)}"

    def _broken_expectations(self) -> Iterator[Finding]:
        return broken_expectations(self.scenario, claims=self._claims, history=self.history, silence=self._silence)

    def _silence(self, operation: str) -> str:
        """Nobody claims anything of an operation: why, as far as that can be told."""
        crash = f" (the client crashed: {self._crash})" if self._crash else ""
        if self._complaint and not crash:
            crash = f" ({self._complaint})"
        busy = " (the client was still busy with it)" if self._orders.is_under_way(operation) and not crash else ""
        return f"nothing anyone claims{crash}{busy}"

    # -- inside

    def _watch(self, entry: Entry) -> None:
        if isinstance(entry.fact, RequestSent):
            self._called = True
        elif isinstance(entry.fact, ClockSet):
            (self._wrong_clocks.add if entry.fact.ahead_s else self._wrong_clocks.discard)(entry.fact.worker)
        elif isinstance(entry.fact, CommandRefused):
            self._refused.add(entry.fact.operation)
        elif isinstance(entry.fact, WorkerEnded) and entry.fact.how == "crashed":
            self._crash = entry.fact.detail
        elif isinstance(entry.fact, SubjectComplained):
            self._complaint = entry.fact.message
