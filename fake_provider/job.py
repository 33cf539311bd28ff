"""One job at the provider, and what is told of it. Pure."""

import hashlib
import hmac
from typing import Any, Final

import msgspec

from fake_provider.calls import JobError, JobView, ResultReference
from fake_provider.contract import Contract, ResultKind
from fake_provider.lifecycle import TERMINAL, JobState
from fake_provider.results import ResultBody, tally
from fake_provider.work import Work

__all__ = ["HELD", "Job", "Teller"]

HELD: Final = "cancel_never_confirmed"
"""The one kind of fault that keeps a job from ending at all."""

_LEAVES_EFFECTS: Final = frozenset({JobState.CANCELLED, JobState.FAILED})


class Job(msgspec.Struct, gc=False, kw_only=True):
    """One piece of work. The only thing here that changes."""

    id: str
    operation: str | None
    operation_id: str | None
    token: str | None
    work: Work
    created_at: float
    updated_at: float
    starts_at: float
    ends_at: float
    expires_at: float | None = None
    state: JobState = JobState.QUEUED
    synchronous: bool = False
    error: JobError | None = None
    result: ResultBody | None = None
    reads: int = 0
    partial_effects: tuple[str, ...] = ()
    stuck: str | None = None  # the fault kind that keeps a cancel from being carried out
    hidden: bool = False  # by a fault: status reads do not find it
    items: tuple[str, ...] | None = None  # what the client calls the items; None: the work says how many there are
    upload: str | None = None
    memo: Any = None  # the dialect's

    @property
    def finished(self) -> bool:
        return self.state in TERMINAL


class Teller:
    """Says what the contract promises to say of a job."""

    def __init__(self, contract: Contract, *, secret: bytes) -> None:
        """Args:
        secret: signs links to results.
        """
        self._contract = contract
        self._secret = secret

    def view(self, job: Job, now: float) -> JobView:
        """Return the job as it is told at ``now``."""
        progress = self.progress(job, now)
        counted = self._contract.result.record_count
        done = 0 if job.finished and job.result is None else progress
        return JobView(
            id=job.id,
            operation=job.operation,
            state=job.state,
            progress=progress if self._contract.status.progress else None,
            created_at=job.created_at,
            updated_at=job.updated_at,
            result=self._reference(job, now) if job.result is not None else None,
            error=job.error,
            partial_effects=job.partial_effects if job.state in _LEAVES_EFFECTS else (),
            started_at=job.starts_at if job.state is not JobState.QUEUED and job.starts_at <= now else None,
            expires_at=job.expires_at,
            counts=tally(job.work, job.items, done) if counted else None,
            upload=job.upload,
            memo=job.memo,
        )

    @staticmethod
    def progress(job: Job, now: float) -> int:
        """Return how far the work has come, in per cent."""
        if job.state is JobState.SUCCEEDED:
            return 100
        until = job.updated_at if job.finished else now
        ran, takes = until - job.starts_at, job.ends_at - job.starts_at
        return max(0, min(99, int(100 * ran / takes))) if takes > 0 else 0

    def _reference(self, job: Job, now: float) -> ResultReference:
        promised, result = self._contract.result, job.result
        assert result is not None
        inline = promised.kind is ResultKind.INLINE or job.synchronous
        signed = promised.kind is ResultKind.SIGNED_URL and not inline
        expires = int(now + promised.url_lifetime_s) if signed else None
        return ResultReference(
            size=len(result.body) if promised.size else None,
            sha256=result.sha256 if promised.checksum else None,
            records=result.records if promised.record_count else None,
            failed=result.failed if promised.record_count else None,
            inline=result.body if inline else None,
            length=len(result.body),
            annex_size=len(result.annex) if result.annex is not None else None,
            expires=expires,
            signature=self.sign(job, expires) if expires is not None else None,
        )

    def sign(self, job: Job, expires: int) -> str:
        """Return what makes a link to the job's result work until ``expires``, seconds since the epoch."""
        return hmac.new(self._secret, f"{job.id}.{expires}".encode(), hashlib.sha256).hexdigest()[:32]
