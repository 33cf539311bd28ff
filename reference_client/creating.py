"""Creating an operation's job, and finding out what became of a create that was not answered (W1, W2, W3). Pure."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from reference_client.adapters.protocol import (
    Absent,
    Accepted,
    Ambiguous,
    Answer,
    Completed,
    Conflict,
    Found,
    JobReport,
    NoAnswer,
    Rejected,
)
from reference_client.config import Lookup, Mechanism
from reference_client.lifecycle import Evidence, LocalState
from reference_client.operation import Call, HistoryEntry, Operation, fingerprint
from reference_client.scheduling import Scheduling, describe
from reference_client.steps import Draft, Step

__all__ = ["Creating", "OperationConflict", "Path"]

_TOKEN_BITS: Final = 160
"""More than the 128 that W2.1 asks for, so that no encoding of it comes below."""


class OperationConflict(ValueError):
    """A known operation id came with another request (W1.7). The record stays as it is."""


class Path(StrEnum):
    """How an unresolved create is reconciled (W3.2)."""

    RESEND = "re-send of the identical request with the same token"
    LOOKUP = "look-up"


class Creating(Scheduling):
    """From a person's request to a known job, or to the certainty that there is none."""

    def open(
        self, operation_id: str, request: Mapping[str, Any], *, target: str, authorised_by: str, actor: str, now: float
    ) -> Step:
        """Return the first record of an operation, to be made durable before anything is sent (W1.2).

        Raises:
            RequestError: if the adapter could never send ``request``.
        """
        canonical, reference = self.adapter.prepare(operation_id, request)
        token = self.new_token()
        operation = Operation(
            operation_id=operation_id,
            state=LocalState.CREATE_PENDING,
            adapter=self.adapter.name,
            target=target,
            request_body=self.adapter.body_with_token(canonical, token),
            request_fingerprint=fingerprint(canonical),
            client_reference=reference,
            idempotency_token=token,
            trace_id=f"{self.random.getrandbits(128) or 1:032x}",
            authorised_by=authorised_by,
            started_by=actor,
            created_at=now,
            create_deadline=now + self.timing.create_deadline_s,
            result_deadline=now + self.timing.result_deadline_s,
            next_attempt_at=now,
        )
        entry = HistoryEntry(
            operation_id=operation_id,
            at=now,
            actor=actor,
            kind="transition",
            before=None,
            after=LocalState.CREATE_PENDING,
            cause=f"submitted on the authority of {authorised_by}",
            reason="the operation is on record; nothing was sent yet",
            trace_id=operation.trace_id,
            evidence=Evidence.SUBMITTED,
            facts={"request_fingerprint": operation.request_fingerprint, "target": target},
        )
        return Step(operation, (entry,))

    def same_request(self, operation: Operation, request: Mapping[str, Any]) -> None:
        """Return if ``request`` is the one that is on record for the operation.

        Raises:
            OperationConflict: otherwise (W1.7).
        """
        canonical, _ = self.adapter.prepare(operation.operation_id, request)
        if fingerprint(canonical) != operation.request_fingerprint:
            raise OperationConflict(
                f"operation {operation.operation_id} is on record with another request "
                f"({operation.request_fingerprint}); a changed request needs a new operation id"
            )

    def new_token(self) -> str:
        """Mint an idempotency token: once for each operation (W2.1)."""
        return f"{self.random.getrandbits(_TOKEN_BITS):040x}"

    def reconciling_path(self, operation: Operation, now: float) -> Path | None:
        """Choose how to find out about a create that was not answered, or None if the contract offers nothing (W3.2,
        W3.3).
        """
        if self.terms.idempotency.mechanism is not Mechanism.NONE and self.token_is_alive(operation, now):
            return Path.RESEND
        if self.terms.lookup.by is not Lookup.NONE:
            return Path.LOOKUP
        return None

    def token_is_alive(self, operation: Operation, now: float) -> bool:
        """Whether a create sent now would arrive while the provider still knows the token."""
        first = operation.first_sent_at
        lifetime_s = self.terms.idempotency.key_lifetime_s
        return first is None or now + self.timing.call_limit_s < first + lifetime_s

    # what an answer does to the record

    def conclude_create(self, draft: Draft, answer: Answer | NoAnswer) -> None:
        """Apply what became of a create, first or repeated."""
        operation = draft.operation
        reconciling = operation.state is LocalState.RECONCILIATION
        if isinstance(answer, NoAnswer):
            if not answer.sent and not reconciling:
                self._never_left(draft, answer)
                return
            self._named_in_passing(draft, answer)
            self._still_unknown(draft, answer, answer.error, answer.detail)
            return
        meaning = self.adapter.read_create(answer)
        match meaning:
            case Accepted():
                evidence = Evidence.RECONCILED_TO_JOB if reconciling else Evidence.ANSWER_NAMES_JOB
                self.accept(draft, answer, meaning.job, meaning.status_path, evidence)
            case Completed():
                self._complete(draft, answer, meaning.job, reconciling=reconciling)
            case Rejected() if meaning.judges_request or not reconciling:
                draft.set(explanation=meaning.detail)
                draft.move(
                    LocalState.FAILED,
                    Evidence.DEFINITE_REJECTION,
                    cause="the provider's answer to the create",
                    reason=f"the provider refused the request: {meaning.detail}",
                )
                draft.outcome(Call.CREATE, reason=f"refused: {meaning.error}", **describe(answer))
            case Conflict():
                self.violation(
                    draft,
                    cause="the provider's answer to the create",
                    reason=f"the provider says the token belongs to another request: {meaning.detail}",
                )
                draft.outcome(Call.CREATE, reason=f"conflict: {meaning.error}", **describe(answer))
            case Rejected() | Ambiguous():
                self._still_unknown(draft, answer, meaning.error, meaning.detail)

    def conclude_lookup(self, draft: Draft, answer: Answer | NoAnswer) -> None:
        """Apply what a look-up told of an unanswered create."""
        if isinstance(answer, NoAnswer):
            self._still_unknown(draft, answer, answer.error, answer.detail)
            return
        meaning = self.adapter.read_lookup(answer)
        if isinstance(meaning, Found):
            if len(meaning.jobs) == 1:
                self.accept(draft, answer, meaning.jobs[0], None, Evidence.RECONCILED_TO_JOB)
                return
            self.violation(
                draft,
                cause="the provider's answer to the look-up",
                reason=f"the provider names {len(meaning.jobs)} jobs for one operation",
                unfamiliar=tuple(job.job_id for job in meaning.jobs),
            )
            draft.outcome(Call.LOOKUP, reason="several jobs", **describe(answer))
        elif isinstance(meaning, Absent) and self.terms.lookup.authoritative:
            self._absent(draft, answer)
        elif isinstance(meaning, Absent):
            detail = "not listed; the contract does not call the look-up authoritative, so this proves nothing"
            self._still_unknown(draft, answer, "not_listed", detail)
        else:
            self._still_unknown(draft, answer, meaning.error, meaning.detail)

    def accept(self, draft: Draft, answer: Answer, job: JobReport, status_path: str | None, evidence: Evidence) -> None:
        """Tie the operation to the job, and schedule the first poll in the same step (W1.5)."""
        operation = draft.operation
        call = operation.in_flight.call if operation.in_flight is not None else Call.CREATE
        cause = f"the provider's answer to the {call}"
        if not self.is_ours(operation, job.client_reference):
            self.violation(
                draft,
                cause=cause,
                reason=f"job {job.job_id} is for another client reference: an old answer, or somebody else's",
                unfamiliar=(job.job_id,),
            )
            draft.outcome(call, reason="not ours", **describe(answer))
            return
        others = tuple(job_id for job_id in operation.named_in_passing if job_id != job.job_id)
        if others:
            self.violation(
                draft,
                cause=cause,
                reason=f"the answer names job {job.job_id}; one that broke off had named job {', '.join(others)}",
                unfamiliar=(*others, job.job_id),
            )
            draft.outcome(call, reason="conflict", **describe(answer))
            return
        _tie(draft, job).set(status_path=status_path)
        schedule = self.try_again(draft, answer)
        draft.move(LocalState.ACCEPTED, evidence, cause=cause, reason=f"the answer names job {job.job_id}", **schedule)
        draft.outcome(call, reason="accepted", **describe(answer))

    def _complete(self, draft: Draft, answer: Answer, job: JobReport, *, reconciling: bool) -> None:
        """Take a synchronous success under the same operation (W1.6)."""
        if not self.is_ours(draft.operation, job.client_reference):
            self.accept(draft, answer, job, None, Evidence.ANSWER_NAMES_JOB)  # which refuses it
            return
        _tie(draft, job).set(synchronous=True)
        self.begin_collecting(draft, job)
        draft.move(
            LocalState.RESULT_COLLECTING,
            Evidence.RECONCILED_TO_SUCCESS if reconciling else Evidence.SYNCHRONOUS_SUCCESS,
            cause="the provider's answer to the create",
            reason=f"job {job.job_id} was done at once; its result came with the answer",
        )
        draft.outcome(Call.CREATE, reason="synchronous success", **describe(answer))

    def _named_in_passing(self, draft: Draft, answer: NoAnswer) -> None:
        """Keep the job id that the headers of a broken answer named: another one later would be a conflict (W3.4)."""
        known = draft.operation.named_in_passing
        succeeded = answer.status is not None and 200 <= answer.status < 300
        job_id = self.adapter.job_named_in_passing(answer) if succeeded else None
        if job_id is not None and job_id not in known:
            draft.set(named_in_passing=(*known, job_id))

    def _never_left(self, draft: Draft, answer: NoAnswer) -> None:
        """No connection, so nothing was sent: the one failure that leaves no doubt."""
        operation = draft.operation
        flight = operation.in_flight
        if flight is not None and operation.first_sent_at == flight.since:
            draft.set(first_sent_at=None)
        self.failed(draft, answer.error)
        draft.outcome(Call.CREATE, reason="not sent", **describe(answer), **self.try_again(draft, answer))

    def _still_unknown(self, draft: Draft, answer: Answer | NoAnswer, error: str, detail: str) -> None:
        """Keep the operation, with class, time and attempt, and reconcile later (W3.1)."""
        operation = draft.operation
        flight = operation.in_flight
        call, attempt = (flight.call, flight.attempt) if flight is not None else (Call.CREATE, 0)
        self.failed(draft, error)
        schedule = self.try_again(draft, answer)
        first = operation.state is LocalState.CREATE_PENDING
        draft.move(
            LocalState.CREATE_UNKNOWN,
            Evidence.AMBIGUOUS_FAILURE if first else Evidence.RECONCILING_AMBIGUOUS,
            cause=f"the {call}, attempt {attempt}",
            reason=f"{error}: {detail}; there may be a job",
            error=error,
            attempt=attempt,
            **schedule,
        )
        draft.outcome(call, reason=f"ambiguous: {error}", **{**describe(answer), "error": error})

    def _absent(self, draft: Draft, answer: Answer) -> None:
        """An authoritative look-up found nothing: the create may be made anew, unless that is no longer wanted or
        safe.
        """
        operation = draft.operation
        why_not = None
        if operation.stop is not None:
            why_not = "the look-up proves that there is no job, and a stop was asked for: nothing more is sent"
        elif self.terms.idempotency.mechanism is not Mechanism.NONE and not self.token_is_alive(operation, draft.now):
            why_not = "the look-up proves that there is no job, but the token's lifetime at the provider is over"
        if why_not is not None:
            draft.set(explanation=why_not)
            draft.move(
                LocalState.HUMAN_DECISION_REQUIRED,
                Evidence.NO_WAY_TO_RECONCILE,
                cause="the provider's answer to the look-up",
                reason=why_not,
            )
        else:
            draft.set(next_attempt_at=draft.now, failure=None)
            draft.move(
                LocalState.CREATE_PENDING,
                Evidence.ABSENCE_PROVED,
                cause="the provider's answer to the look-up",
                reason="an authoritative look-up names no job: the create took no effect",
            )
        draft.outcome(Call.LOOKUP, reason="no job", **describe(answer))


def _tie(draft: Draft, job: JobReport) -> Draft:
    """Tie the operation to its job: write down the job's id, and its state as first told (W1.5)."""
    return draft.set(
        remote_job_id=job.job_id,
        accepted_at=draft.now,
        remote_state=job.state,
        remote_rank=job.rank,
        remote_over=job.phase.is_end,
        remote_updated_at=job.updated_at,
        observed_at=draft.now,
        progress=job.progress,
        failure=None,
        misses=0,
    )
