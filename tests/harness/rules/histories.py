"""Histories written by hand, in the order in which things happened: what the tests of the rules are made of.

Each method adds what one event leaves in a history and returns the story, so that a case reads in one breath. Times
are seconds from the start and stay where they are until an ``at`` moves them. Everything has a default; a case names
only what matters.
"""

from collections.abc import Mapping
from typing import Any, Self

from fake_provider.facts import (
    AnswerEnded,
    CommitPoint,
    Endpoint,
    EventDelivered,
    EventSent,
    Fate,
    FaultsHealed,
    FaultStruck,
    JobCreated,
    JobMoved,
    RequestSent,
    ResultRead,
)
from harness.history import (
    AnyFact,
    Claimed,
    ClockSet,
    Commanded,
    CommandRefused,
    History,
    LeaseNoted,
    LedgerRead,
    RunEnded,
    RunStarted,
    SecretSaid,
    StateRecorded,
    SubjectComplained,
    WorkerEnded,
    WorkerResumed,
    WorkerStarted,
    WorkerStopped,
)
from harness.rules.judge import Judge, Judgement
from harness.subject import REST_STATES

TOKEN = "9f1c2a7be04d4c1b8a6d3e5f70219c4d"
OTHER_TOKEN = "0d7e6b5a4c3f2918e7d6c5b4a3928170"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
OTHER_TRACE = "7a1c5e9b3d2f4860a1b2c3d4e5f60718"
CREDENTIAL = "sha256:0123456789abcdef"
BODY = "sha256:aa"
SHA = "5c" * 32
TIMING = {
    "request_timeout_s": 1.0,
    "poll_first_s": 0.5,
    "poll_cap_s": 2.0,
    "poll_jitter": 0.1,
    "lease_s": 2.0,
    "create_deadline_s": 10.0,
    "result_deadline_s": 20.0,
    "cancel_deadline_s": 5.0,
}


class Story:
    """One history in the making."""

    def __init__(self) -> None:
        self.time = 0.0
        self._judge = Judge()
        self._history = History(lambda: self.time, [self._judge.observe])
        self._contract: dict[str, Any] = {}
        self._mode = "simulated"
        self._exchange = 0
        self._delivery = 0
        self._jobs: dict[str, str] = {}

    # -- the terms, before anything else ------------------------------------------------------------------------------

    def under(self, **contract: Any) -> Self:
        """Set fields of the contract."""
        self._contract = contract
        return self

    def real(self) -> Self:
        """The run is one of real processes on real clocks."""
        self._mode = "process"
        return self

    def add(self, fact: AnyFact, at: float | None = None) -> Self:
        """Add any fact."""
        if at is not None:
            self.time = at
        if not len(self._history):
            self._history.record(
                RunStarted(
                    scenario="by-hand",
                    mode=self._mode,
                    seed=0,
                    contract=self._contract,
                    timing=TIMING,
                    credential=CREDENTIAL,
                    origin="http://provider.test",
                )
            )
            for worker in ("w1", "w2"):
                self._history.record(WorkerStarted(worker=worker))
        self._history.record(fact)
        return self

    @property
    def history(self) -> History:
        """What has been told so far."""
        return self._history

    def judgement(self) -> Judgement:
        """What all the rules make of it."""
        if not len(self._history):
            self.add(WorkerStarted(worker="w3"))
        return self._judge.conclude()

    # -- commands and workers -----------------------------------------------------------------------------------------

    def told(
        self,
        command: str,
        op: str = "op-1",
        *,
        at: float | None = None,
        by: str = "w1",
        changed: bool = False,
        decided: str | None = None,
        asked: str | None = None,
    ) -> Self:
        return self.add(
            Commanded(command=command, operation=op, worker=by, changed=changed, decided=decided, asked=asked), at
        )

    def refused(self, command: str, op: str = "op-1", *, by: str = "w1") -> Self:
        return self.add(CommandRefused(command=command, operation=op, worker=by, reason="it exists"))

    def killed(self, by: str = "w1", *, at: float | None = None) -> Self:
        return self.add(WorkerEnded(worker=by, how="killed"), at)

    def stopped(self, by: str = "w1", *, at: float | None = None) -> Self:
        return self.add(WorkerStopped(worker=by), at)

    def clock_set(self, ahead_s: float, by: str = "w1", *, at: float | None = None) -> Self:
        return self.add(ClockSet(worker=by, ahead_s=ahead_s), at)

    def resumed(self, by: str = "w1", *, at: float | None = None) -> Self:
        return self.add(WorkerResumed(worker=by), at)

    def started(self, by: str = "w1", *, at: float | None = None) -> Self:
        return self.add(WorkerStarted(worker=by, life=2), at)

    # -- exchanges ----------------------------------------------------------------------------------------------------

    def call(
        self,
        endpoint: Endpoint,
        *,
        at: float | None = None,
        op: str | None = "op-1",
        by: str = "w1",
        job: str | None = None,
        fate: str | None = "delivered",
        faults: tuple[str, ...] = (),
        request: Mapping[str, Any] | None = None,
        answer: Mapping[str, Any] | None = None,
        takes_s: float = 0.0,
        made: JobCreated | None = None,
        served: ResultRead | None = None,
    ) -> Self:
        """One exchange; with ``fate`` None it stays open."""
        number = self._exchange
        asked = {"trace": TRACE, "credential": CREDENTIAL, "path": "/v1/jobs", **(request or {})}
        self.add(
            RequestSent(exchange=number, worker=by, endpoint=endpoint, method="GET", operation=op, job=job, **asked), at
        )
        self._exchange += 1
        if made is not None:
            self._jobs[made.job] = op or ""
            self.add(made)
        for kind in faults:
            self.add(
                FaultStruck(
                    fault=0,
                    kind=kind,
                    address="x#1:committed",
                    endpoint=endpoint,
                    point=CommitPoint.COMMITTED,
                    exchange=number,
                )
            )
        if served is not None:
            self.add(served)
        if fate is None:
            return self
        told = {"job": job, **(answer or {})}
        ended = AnswerEnded(exchange=number, worker=by, endpoint=endpoint, fate=Fate(fate), operation=op, **told)
        return self.add(ended, self.time + takes_s)

    def under_way(self, endpoint: Endpoint, *, at: float) -> int:
        """An exchange that is answered later; return its number."""
        self.call(endpoint, fate=None, job="job-1", at=at)
        return self._exchange - 1

    def answered(self, number: int, endpoint: Endpoint, state: str) -> Self:
        """The answer to it, with the state of the job."""
        return self.add(
            AnswerEnded(
                exchange=number,
                worker="w1",
                endpoint=endpoint,
                fate=Fate.DELIVERED,
                status=200,
                operation="op-1",
                job="job-1",
                remote_state=state,
                canonical_state=state,
            )
        )

    def create(
        self,
        *,
        token: str | None = TOKEN,
        body: str = BODY,
        job: str | None = "job-1",
        status: int | None = 202,
        state: str | None = "queued",
        retry_after: float | None = None,
        dated: bool = False,
        op: str | None = "op-1",
        copy_of: int | None = None,
        trace: str | None = TRACE,
        credential: str | None = CREDENTIAL,
        from_fault: bool = False,
        replayed: bool = False,
        asked: str | None = None,
        **more: Any,
    ) -> Self:
        """A create; the first that names a job makes it. ``job`` None: the provider did nothing."""
        good = status is not None and status < 300
        made = None
        if job is not None and job not in self._jobs:
            made = JobCreated(
                job=job,
                operation=op,
                exchange=self._exchange,
                token=token,
                fingerprint=body,
                synchronous=state in {"succeeded", "failed"},
            )
        return self.call(
            Endpoint.CREATE,
            op=op,
            made=made,
            request={
                "token": token,
                "fingerprint": body,
                "copy_of": copy_of,
                "trace": trace,
                "credential": credential,
                "asked": asked,
            },
            answer={
                "job": job if good else None,
                "status": status,
                "canonical_state": state if good and job else None,
                "retry_after_s": retry_after,
                "retry_after_is_date": dated,
                "from_fault": from_fault,
                "replayed": replayed,
            },
            **more,
        )

    def lost(self, **more: Any) -> Self:
        """A create whose answer is lost, though the provider took it."""
        return self.create(**{"fate": "lost", **more})

    def poll(
        self,
        state: str | None = "running",
        *,
        status: int = 200,
        job: str | None = "job-1",
        retry_after: float | None = None,
        dated: bool = False,
        progress: int | None = None,
        trace: str | None = TRACE,
        credential: str | None = CREDENTIAL,
        from_fault: bool = False,
        exposed: tuple[str, ...] = (),
        **more: Any,
    ) -> Self:
        answer = {
            "status": status,
            "canonical_state": state if status == 200 else None,
            "remote_state": state if status == 200 else None,
            "retry_after_s": retry_after,
            "retry_after_is_date": dated,
            "progress": progress,
            "from_fault": from_fault,
        }
        request = {"trace": trace, "credential": credential, "exposed": exposed}
        return self.call(Endpoint.STATUS, job=job, request=request, answer=answer, **more)

    def look_up(
        self,
        found: str | None = "job-1",
        *,
        status: int = 200,
        state: str = "running",
        problem: str | None = None,
        **more: Any,
    ) -> Self:
        answer = {
            "status": status,
            "job": found,
            "canonical_state": state if found else None,
            "problem": problem,
        }
        return self.call(Endpoint.LOOKUP, answer=answer, **more)

    def cancel(
        self, *, status: int | None = 202, state: str | None = "cancelling", job: str | None = "job-1", **more: Any
    ) -> Self:
        """A cancel call. (``told("cancel")`` is the command.)"""
        return self.call(Endpoint.CANCEL, job=job, answer={"status": status, "canonical_state": state}, **more)

    def fetch(
        self, *, sha: str = SHA, status: int = 200, job: str = "job-1", problem: str | None = None, **more: Any
    ) -> Self:
        served = None
        if status == 200:
            served = ResultRead(job=job, operation="op-1", exchange=self._exchange, sha256=sha, size_bytes=10, time=1)
        answer = {"status": status, "job": None, "problem": problem}
        return self.call(Endpoint.RESULT, job=job, served=served, answer=answer, **more)

    def annex(self, *, status: int = 200, job: str = "job-1", **more: Any) -> Self:
        """A read of what lies beside the result."""
        return self.call(Endpoint.ANNEX, job=job, answer={"status": status, "job": None}, **more)

    def elsewhere(self, *, credential: str | None, exposed: tuple[str, ...] = ()) -> Self:
        """A request to another origin."""
        request = {"credential": credential, "exposed": exposed, "origin": "http://elsewhere.test", "path": "/result"}
        return self.call(Endpoint.OTHER, op=None, request=request, answer={"status": 200})

    def redirected(self) -> Self:
        return self.fetch(status=302)

    # -- the provider -------------------------------------------------------------------------------------------------

    def moved(self, after: str, *, job: str = "job-1", at: float | None = None, failed: int = 0) -> Self:
        done = after == "succeeded"
        return self.add(
            JobMoved(
                job=job,
                operation=self._jobs.get(job),
                before="running",
                after=after,
                cause="schedule",
                records=3 if done else None,
                failed_items=failed if done else None,
                result_sha256=SHA if done else None,
            ),
            at,
        )

    def webhook(
        self,
        kind: str = "job.succeeded",
        *,
        event: str = "evt-1",
        at: float | None = None,
        answered: int | None = 200,
        genuine: bool = True,
        by: str = "w1",
        skew: int = 0,
    ) -> Self:
        number = self._delivery
        self._delivery += 1
        self.add(
            EventSent(
                delivery=number,
                event=event,
                type=kind,
                job="job-1",
                operation="op-1",
                attempt=1,
                genuine=genuine,
                worker=by,
                skew_s=skew,
            ),
            at,
        )
        return self.add(EventDelivered(delivery=number, event=event, worker=by, status=answered))

    # -- what the client says -----------------------------------------------------------------------------------------

    def noted(
        self,
        before: str | None,
        after: str,
        *,
        job: str | None = None,
        at: float | None = None,
        op: str = "op-1",
        by: str = "w1",
        actor: str = "w1",
        cause: str = "an answer",
        reason: str = "it says so",
    ) -> Self:
        return self.add(
            StateRecorded(
                worker=by,
                operation=op,
                before=before,
                after=after,
                entry="transition" if before != after else "note",
                actor=actor,
                cause=cause,
                reason=reason,
                remote_job=job,
            ),
            at,
        )

    def lease(self, what: str, fence: int, *, by: str = "w1", at: float | None = None, lasts: float = 2.0) -> Self:
        return self.add(LeaseNoted(worker=by, operation="op-1", what=what, fence=fence, lasts_s=lasts), at)

    def complained(self, message: str) -> Self:
        return self.add(SubjectComplained(worker="w1", message=message))

    def said_a_secret(self) -> Self:
        return self.add(SecretSaid(worker="w1", where="note"))

    def claimed(
        self,
        state: str,
        *,
        job: str | None = "job-1",
        sha: str | None = None,
        records: int | None = None,
        failed: int | None = None,
        why: str | None = None,
        op: str = "op-1",
        by: str = "w1",
        at: float | None = None,
    ) -> Self:
        return self.add(
            Claimed(
                operation=op,
                worker=by,
                state=state,
                at_rest=state in REST_STATES,
                remote_job=job,
                result_sha256=sha,
                records=records,
                failed_items=failed,
                explanation=why,
            ),
            at,
        )

    # -- the end ------------------------------------------------------------------------------------------------------

    def healed(self, *, at: float | None = None) -> Self:
        return self.add(FaultsHealed(struck=0, planned=0), at)

    def ledger(self, state: str, *, job: str = "job-1", op: str | None = "op-1") -> Self:
        return self.add(LedgerRead(job=job, operation=op, state=state))

    def ended(self, *, at: float | None = None) -> Self:
        return self.add(RunEnded(at_rest=True, drained_s=0.0), at)

    # -- what several cases share -------------------------------------------------------------------------------------

    def succeeds(self) -> Self:
        """Created, polled until its job has succeeded, and its result fetched undamaged."""
        return self.create().moved("succeeded").poll("succeeded", at=1).fetch()
