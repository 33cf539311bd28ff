"""The provider itself, without any wire: create, look up, read, cancel and serve results, as the contract promises.

Pure: ``now`` comes in as an argument, time moves jobs only when :meth:`Provider.advance` is called, and what happened
goes out as facts. It knows neither HTTP nor faults; a fault that makes the provider tell an untruth changes what is
told (``fake_provider.faults``), or calls one of the few methods here, and in the books, that say so.
"""

import hmac
from collections.abc import Callable, Mapping
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING

import msgspec

from fake_provider.books import MAX_JOBS, JobBook, LedgerLine
from fake_provider.calls import (
    EXPIRED,
    Browse,
    Call,
    Cancel,
    Cancelled,
    Create,
    Created,
    Fetch,
    Found,
    JobError,
    JobView,
    Listed,
    Lookup,
    Problem,
    Read,
    ReadUpload,
    Refused,
    Reply,
    Served,
    Upload,
    UploadedFile,
)
from fake_provider.contract import (
    CancelEffect,
    Contract,
    CreateAnswer,
    FinishedCancel,
    LookupBy,
    Replays,
    ResultKind,
)
from fake_provider.facts import CancelTaken, Endpoint, JobCreated, JobMoved, Record
from fake_provider.job import HELD, Job, Teller
from fake_provider.keys import KeyBook, Ticket
from fake_provider.lifecycle import JobState, move
from fake_provider.results import ResultBody, Style, make_result
from fake_provider.uploads import Uploads
from fake_provider.work import DEFAULT, Work

if TYPE_CHECKING:  # handed in, never made here
    from random import Random

__all__ = ["Provider"]


class Provider:
    """What one provider does when it is called, and how its jobs move. ``jobs`` has them all."""

    def __init__(
        self,
        contract: Contract,
        *,
        random: "Random",
        record: Record,
        work: Mapping[str, Work],
        moved: Callable[[Job, float], None],
        style: Style,
    ) -> None:
        """Args:
        random: makes the ids, so that equal seeds give equal runs.
        record: takes each fact.
        work: what the jobs of an operation do, by operation; ``"default"`` for those not named.
        moved: told of each job that changed its state, and when.
        style: how ids and results are written.
        """
        self.contract = contract
        self._record = record
        self._work = dict(work)
        self._moved = moved
        self._style = style
        self.jobs = JobBook(prefix=style.job_prefix, random=random)
        self.uploads = Uploads(prefix=style.upload_prefix, random=random)
        self._default = self._work.pop(DEFAULT, Work())
        stubborn = sorted(name for name, one in {DEFAULT: self._default, **self._work}.items() if not one.heeds_cancel)
        if stubborn and contract.cancel.effect is not CancelEffect.BEST_EFFORT:
            raise ValueError(
                f"work {stubborn[0]!r} has heeds_cancel: false, which only a contract with cancel.effect: best_effort "
                f"allows; this one says {contract.cancel.effect}"
            )
        self._teller = Teller(contract, secret=random.randbytes(32))
        self.keys = KeyBook(contract.idempotency)
        self._due: list[tuple[float, int, Job, JobState | None]] = []  # None: the work's own end
        self._order = count()

    # -- time ------------------------------------------------------------------------------------------------------

    def next_due(self) -> float | None:
        """Return when the next job moves by itself, or None."""
        while self._due and not self._still_due(self._due[0][2], self._due[0][3]):
            heappop(self._due)
        return self._due[0][0] if self._due else None

    def advance(self, now: float) -> None:
        """Move every job that is due at ``now``, in the order in which they fell due."""
        while self._due and self._due[0][0] <= now:
            due, _, job, state = heappop(self._due)
            if not self._still_due(job, state):
                continue
            if state is None:
                self._finish(job, JobState(job.work.outcome), due, cause="schedule")
            elif state is JobState.FAILED:
                self._expire(job, due)
            else:
                self._move(job, state, due, cause="cancel" if state is JobState.CANCELLED else "schedule")

    @staticmethod
    def _still_due(job: Job, state: JobState | None) -> bool:
        if state is JobState.RUNNING:
            return job.state is JobState.QUEUED
        if state is JobState.CANCELLED:
            return job.state is JobState.CANCELLING and job.stuck is None
        return not job.finished and job.stuck != HELD

    def _plan(self, due: float, job: Job, state: JobState | None) -> None:
        heappush(self._due, (due, next(self._order), job, state))

    def _move(self, job: Job, after: JobState, now: float, *, cause: str) -> None:
        if after is JobState.CANCELLED:
            job.result = self._partial_result(job, now)
        before, job.state = job.state, move(job.state, after)
        job.updated_at = now
        result = job.result if after is JobState.SUCCEEDED else None
        self._record(
            JobMoved(
                job=job.id,
                operation=job.operation,
                before=before,
                after=after,
                cause=cause,
                records=result.records if result else None,
                failed_items=result.failed if result else None,
                result_sha256=result.sha256 if result else None,
            )
        )
        self._moved(job, now)

    def _finish(self, job: Job, after: JobState, now: float, *, cause: str, error: str | None = None) -> None:
        if after is JobState.SUCCEEDED:
            job.result = make_result(job.operation, job.work, self._style, job.items)
        elif after is JobState.FAILED:
            job.error = JobError("job_failed", error or job.work.error or "the work could not be done")
        if cause == "schedule" and job.stuck:
            cause = job.stuck
        self._move(job, after, now, cause=cause)

    def _expire(self, job: Job, now: float) -> None:
        job.error = JobError(EXPIRED, f"the job was not done within {self.contract.time_limit_s:g} s")
        job.result = self._partial_result(job, now)
        self._move(job, JobState.FAILED, now, cause="expiry")

    def _partial_result(self, job: Job, now: float) -> ResultBody | None:
        """Return what an unfinished job has done, where the contract promises that it is kept and there is any."""
        if not self.contract.result.partial:
            return None
        done = make_result(job.operation, job.work, self._style, job.items, self._teller.progress(job, now))
        return done if done.rows else None

    def view(self, job: Job, now: float) -> JobView:
        """Return the job as it is told at ``now``."""
        return self._teller.view(job, now)

    # -- calls -----------------------------------------------------------------------------------------------------

    def reserve(self, call: Create, now: float) -> Ticket:
        """Receive a create: claim its token, or learn that the answer is already known. See :class:`KeyBook`."""
        return self.keys.reserve(call, now)

    def perform(self, call: Call, exchange: int, now: float, ticket: Ticket | None = None) -> Reply:
        """Do what was asked and say what to answer. The effect is applied when this returns."""
        if call.refusal is not None:
            return call.refusal
        if isinstance(call, Create):
            return self._create(call, exchange, now, ticket or Ticket())
        if isinstance(call, Lookup):
            return self._look_up(call, now)
        if isinstance(call, Browse):
            return self._browse(call, now)
        if isinstance(call, Upload):
            return self.uploads.keep(call, now)
        if isinstance(call, ReadUpload):
            return self.uploads.read(call)
        job = self.jobs.get(call.job)
        if job is None or (job.hidden and isinstance(call, Read)):
            return Refused(problem=Problem.NOT_FOUND, detail=f"there is no job {call.job}", job=call.job)
        if isinstance(call, Read):
            view = self.view(job, now)
            return Found(view=view if view.id == call.job else msgspec.structs.replace(view, id=call.job))
        if isinstance(call, Cancel):
            return self._cancel(job, exchange, now)
        if isinstance(call, Fetch):
            return self._serve(call, job, now)
        raise TypeError(f"no provider answers a {type(call).__name__}")

    def _create(self, call: Create, exchange: int, now: float, ticket: Ticket) -> Reply:
        if ticket.refused is not None:
            return ticket.refused
        key = ticket.key
        if key is not None and key.view is not None:
            current = self.contract.idempotency.replays is Replays.CURRENT_STATE
            job = self.jobs.get(key.view.id)
            return Created(view=self.view(job, now) if current and job else key.view, replayed=True)
        if self.jobs.is_full:
            return Refused(problem=Problem.TOO_MANY_JOBS, detail=f"this provider keeps at most {MAX_JOBS} jobs")
        source = self.uploads.get(call.upload) if call.upload is not None else None
        if call.upload is not None and source is None:
            return Refused(problem=Problem.INVALID_REQUEST, detail=f"there is no uploaded document {call.upload}")
        job = self._new_job(call, source, exchange, now)
        view = self.view(job, now)
        if key is not None:
            key.commit(view)
        if job.state is JobState.QUEUED and job.starts_at <= now:
            self._move(job, JobState.RUNNING, now, cause="schedule")
        return Created(view=view)

    def _new_job(self, call: Create, source: UploadedFile | None, exchange: int, now: float) -> Job:
        work = self._work.get(call.operation or "", self._default)
        if source is not None and source.complaint is not None:
            work = Work(takes_s=0, outcome="failed", error=source.complaint, records=0)
        synchronous = self.contract.create_answer is CreateAnswer.SYNCHRONOUS
        starts_at = now + work.queued_s
        job = Job(
            id=self.jobs.mint_id(),
            operation=call.operation,
            operation_id=call.operation_id,
            token=call.token,
            work=work,
            partial_effects=work.partial_effects,
            created_at=now,
            updated_at=now,
            starts_at=starts_at,
            ends_at=starts_at + work.takes_s,
            expires_at=now + self.contract.time_limit_s if self.contract.time_limit_s is not None else None,
            synchronous=synchronous,
            items=source.items if source is not None else None,
            upload=call.upload,
            memo=call.memo,
        )
        self.jobs.enter(job)
        self._record(
            JobCreated(
                job=job.id,
                operation=job.operation,
                exchange=exchange,
                token=job.token,
                fingerprint=call.fingerprint,
                synchronous=synchronous,
            )
        )
        if synchronous:
            self._move(job, JobState.RUNNING, now, cause="schedule")
            self._finish(job, JobState(work.outcome), now, cause="schedule")
        else:
            if starts_at > now:
                self._plan(starts_at, job, JobState.RUNNING)
            self._plan_end(job, now)
        return job

    def _plan_end(self, job: Job, now: float) -> None:
        """Plan how a job ends if nobody interferes: by its work, or because its time is over."""
        if job.expires_at is not None and job.expires_at < job.ends_at:
            self._plan(max(now, job.expires_at), job, JobState.FAILED)
        else:
            self._plan(max(now, job.ends_at), job, None)

    def _look_up(self, call: Lookup, now: float) -> Reply:
        promised = self.contract.lookup
        if promised.by is LookupBy.NONE or call.by is not promised.by:
            return Refused(problem=Problem.NOT_OFFERED, detail="this provider offers no such look-up")
        found = self.jobs.marked(promised.by, call.value)
        shown = (job for job in found if job.created_at + promised.lag_s <= now)
        return Listed(views=tuple(self.view(job, now) for job in shown))

    def _browse(self, call: Browse, now: float) -> Reply:
        promised = self.contract.lookup
        if promised.by is LookupBy.NONE:
            return Refused(problem=Problem.NOT_OFFERED, detail="this provider offers no such look-up")
        shown = [job for job in reversed(self.jobs) if job.created_at + promised.lag_s <= now]
        if call.after is not None:
            last = self.jobs.get(call.after)
            if last not in shown:
                return Refused(problem=Problem.NOT_FOUND, detail=f"there is no job {call.after} to go on after")
            shown = shown[shown.index(last) + 1 :]
        page = tuple(self.view(job, now) for job in shown[: call.limit])
        return Listed(views=page, more=len(shown) > len(page))

    def _cancel(self, job: Job, exchange: int, now: float) -> Reply:
        promised = self.contract.cancel
        reply: Reply
        if promised.effect is CancelEffect.UNSUPPORTED:
            effect = "ignored"
            reply = Refused(problem=Problem.METHOD_NOT_ALLOWED, detail="jobs cannot be cancelled", job=job.id)
        elif job.finished:
            effect = "already_terminal"
            reply = self._cancel_finished(job, now)
        elif job.state is JobState.CANCELLING:
            effect = "cancelling"
            reply = (
                Cancelled(view=self.view(job, now), confirmed=False)
                if promised.repeatable
                else Refused(problem=Problem.CANCEL_IN_PROGRESS, detail="this job is being cancelled", job=job.id)
            )
        elif promised.effect is CancelEffect.CONFIRMED and job.stuck is None:
            effect = "cancelled"
            self._move(job, JobState.CANCELLED, now, cause="cancel")
            reply = Cancelled(view=self.view(job, now), confirmed=True)
        elif promised.effect is CancelEffect.BEST_EFFORT and not job.work.heeds_cancel:
            effect = "ignored"
            reply = Cancelled(view=self.view(job, now), confirmed=False)
        else:
            effect = "cancelling"
            self._move(job, JobState.CANCELLING, now, cause="cancel")
            self._plan(now + promised.takes_s, job, JobState.CANCELLED)
            reply = Cancelled(view=self.view(job, now), confirmed=False)
        self._record(CancelTaken(job=job.id, operation=job.operation, exchange=exchange, effect=effect))
        return reply

    def _cancel_finished(self, job: Job, now: float) -> Reply:
        match self.contract.cancel.finished:
            case FinishedCancel.OK_200:
                return Cancelled(view=self.view(job, now), confirmed=True)
            case FinishedCancel.NOT_FOUND_404:
                return Refused(problem=Problem.NOT_FOUND, detail=f"there is no job {job.id} to cancel", job=job.id)
            case FinishedCancel.CONFLICT_409:
                detail = f"the job has already {job.state if job.state is not JobState.CANCELLED else 'been cancelled'}"
                return Refused(problem=Problem.JOB_FINISHED, detail=detail, job=job.id)

    def _serve(self, call: Fetch, job: Job, now: float) -> Reply:
        promised = self.contract.result
        if promised.kind is ResultKind.INLINE or job.synchronous:
            return Refused(problem=Problem.NOT_OFFERED, detail="the job itself holds its result", job=job.id)
        if promised.kind is ResultKind.SIGNED_URL:
            if call.expires is None or not hmac.compare_digest(
                self._teller.sign(job, call.expires), call.signature or ""
            ):
                return Refused(problem=Problem.LINK_INVALID, detail="this link was not signed here", job=job.id)
            if now >= call.expires:
                detail = "this link has expired; the job's status holds a new one"
                return Refused(problem=Problem.LINK_EXPIRED, detail=detail, job=job.id)
        if job.result is None:
            problem = Problem.RESULT_GONE if job.finished else Problem.NOT_FINISHED
            return Refused(problem=problem, detail=f"the job is {job.state}: it has no result", job=job.id)
        if call.endpoint is Endpoint.ANNEX:
            return self._serve_annex(job)
        if promised.kind is ResultKind.ONE_TIME and job.reads:
            return Refused(problem=Problem.RESULT_GONE, detail="this result was read and is kept no longer", job=job.id)
        job.reads += 1
        return Served(
            job=job.id,
            operation=job.operation,
            body=job.result.body,
            sha256=job.result.sha256 if promised.checksum else None,
        )

    @staticmethod
    def _serve_annex(job: Job) -> Reply:
        annex = job.result.annex if job.result is not None else None
        if annex is None:
            return Refused(problem=Problem.NOT_FOUND, detail="nothing lies beside this result", job=job.id)
        return Served(job=job.id, operation=job.operation, body=annex, annex=True)

    # -- steering and reading the books ----------------------------------------------------------------------------

    def complete(self, operation: str, now: float) -> None:
        """Let the operation's unfinished job succeed now.

        Raises:
            ControlError: if it has none.
        """
        self.advance(now)
        self._finish(self.jobs.unfinished(operation), JobState.SUCCEEDED, now, cause="control")

    def fail(self, operation: str, now: float, error: str | None = None) -> None:
        """Let the operation's unfinished job fail now.

        Raises:
            ControlError: if it has none.
        """
        self.advance(now)
        self._finish(self.jobs.unfinished(operation), JobState.FAILED, now, cause="control", error=error)

    def finish_early(self, job: Job, now: float, *, cause: str) -> None:
        """Let a job come to its own end at once; of no effect on a finished one."""
        if not job.finished:
            self._finish(job, JobState(job.work.outcome), now, cause=cause)

    def unstick(self, now: float) -> None:
        """Carry out what faults have held back: cancels that were never confirmed are, hidden jobs are found again."""
        for job in self.jobs:
            job.hidden = False
            if job.stuck == HELD and not job.finished:
                job.stuck = None
                if job.state is JobState.CANCELLING:
                    self._plan(now, job, JobState.CANCELLED)
                else:
                    self._plan_end(job, now)

    def fingerprint(self) -> object:
        """Return all that the provider acts on, in types of JSON: providers that agree in it do the same when asked the
        same. Nothing in it is random.
        """
        return *self.jobs.fingerprint(), self.keys.fingerprint(), self.uploads.fingerprint()

    def outlook(self, now: float) -> tuple[object, dict[str, float]]:
        """Return all that the provider will go on from, in types of JSON, and what the clock alone will change: its
        name, and in how many seconds. What is past is not in it; providers that agree in both do the same from here on.
        """
        number = self.jobs.numbers()
        keys, ends = self.keys.outlook(now)
        for due, _, job, state in self._due:
            if self._still_due(job, state):
                ends[f"job {number[id(job)]} {state or 'ends'}"] = due - now
        for job in self.jobs:
            shown = job.created_at + self.contract.lookup.lag_s
            if shown > now:
                ends[f"job {number[id(job)]} shown"] = shown - now
        return (*self.jobs.outlook(), keys, self.uploads.fingerprint()), ends

    def ledger(self, now: float) -> list[LedgerLine]:
        """Return every job in order of creation, as it truly is at ``now``."""
        self.advance(now)
        return self.jobs.ledger()
