"""Reading a job's status, and what an observation may do to an operation (W4, W5). Pure."""

from typing import Final

from reference_client.adapters.protocol import Answer, JobReport, Missing, Moved, NoAnswer, Phase
from reference_client.lifecycle import Evidence, LocalState
from reference_client.operation import Call, fingerprint
from reference_client.scheduling import Scheduling, describe
from reference_client.steps import Draft

__all__ = ["Observing"]

_S = LocalState
_WHEN_CANCELLING: Final = {
    Phase.SUCCEEDED: (_S.RESULT_COLLECTING, Evidence.STATUS_SUCCESS_WON),
    Phase.FAILED: (_S.FAILED, Evidence.STATUS_FAILURE),
    Phase.CANCELLED: (_S.CANCELLED, Evidence.STATUS_CANCELLED),
}
_WHEN_READ_AGAIN: Final = {
    Phase.SUCCEEDED: (_S.RESULT_COLLECTING, Evidence.LATER_READ),
    Phase.FAILED: (_S.FAILED, Evidence.LATER_READ),
    Phase.CANCELLED: (_S.CANCELLED, Evidence.LATER_READ),
}
_ENDS: Final = {
    _S.OBSERVING: {
        Phase.SUCCEEDED: (_S.RESULT_COLLECTING, Evidence.STATUS_SUCCESS),
        Phase.FAILED: (_S.FAILED, Evidence.PROVIDER_REPORTS_FAILURE),
        Phase.CANCELLED: (_S.CANCELLED, Evidence.CANCELLED_BY_OTHERS),
    },
    _S.CANCEL_REQUESTED: _WHEN_CANCELLING,
    _S.CANCELLING: _WHEN_CANCELLING,
    _S.RESULT_TIMED_OUT: _WHEN_READ_AGAIN,
    _S.CANCELLATION_UNCONFIRMED: _WHEN_READ_AGAIN,
}
"""Where a terminal remote state leads, by the local state it is read in."""


class Observing(Scheduling):
    """From a known job to its end."""

    def conclude_status(self, draft: Draft, answer: Answer | NoAnswer) -> None:
        """Apply what a status read told. Only a terminal remote state moves the operation (W4.4, W4.5)."""
        draft.set(polls=draft.operation.polls + 1)
        if isinstance(answer, NoAnswer):
            self._nothing_learned(draft, answer, answer.error, answer.detail)
            return
        meaning = self.adapter.read_status(answer)
        if isinstance(meaning, JobReport):
            self._observe(draft, answer, meaning)
        elif isinstance(meaning, Missing):
            self._missing(draft, answer, meaning)
        elif isinstance(meaning, Moved):
            if meaning.path is not None:
                draft.set(status_path=meaning.path)
            self._nothing_learned(draft, answer, "redirected", meaning.detail)
        else:
            self._nothing_learned(draft, answer, meaning.error, meaning.detail)

    def steering_phase(self, report: JobReport) -> Phase:
        """Return what a report steers by: the state alone, never the progress (W4.5)."""
        return report.phase

    def _observe(self, draft: Draft, answer: Answer, report: JobReport) -> None:
        operation = draft.operation
        if report.job_id != operation.remote_job_id or not self.is_ours(operation, report.client_reference):
            self.violation(
                draft,
                cause="a status read",
                reason=f"asked for job {operation.remote_job_id}, the provider answered with job {report.job_id}, "
                f"client reference {report.client_reference}",
                unfamiliar=(report.job_id,),
            )
            draft.outcome(Call.STATUS, reason="not ours", **describe(answer))
            return
        back = report.rank is not None and operation.remote_rank is not None and report.rank < operation.remote_rank
        if not back:
            draft.set(
                remote_state=report.state,
                remote_rank=report.rank if report.rank is not None else operation.remote_rank,
                remote_over=operation.remote_over or report.phase.is_end,
                remote_updated_at=report.updated_at,
                progress=report.progress,
            )
        known = operation.partial_effects
        draft.set(
            observed_at=draft.now,
            answer_sha256=fingerprint(answer.body),
            failure=None,
            partial_effects=known + tuple(effect for effect in report.partial_effects if effect not in known),
        )
        phase = self.steering_phase(report)
        end = _ENDS.get(operation.state, {}).get(phase)
        said = {
            "said": report.state,
            "progress": report.progress,
            "updated_at": report.updated_at,
            "notes": list(report.notes) or None,
            "partial_effects": list(report.partial_effects) or None,
        }
        if operation.state is _S.RESULT_COLLECTING:
            self._reread(draft, answer, report)
        elif end is None:
            reason = f"job {report.state}"
            if back:
                reason += f" after {operation.remote_state}: an old answer; the record stays"
            elif phase is Phase.UNKNOWN:
                reason += ": not a state the contract knows; it steers nothing"
            draft.set(reconcile_until=None)
            draft.outcome(Call.STATUS, reason=reason, **describe(answer), **said, **self.try_again(draft, answer))
        else:
            self._end(draft, report, *end)
            draft.outcome(Call.STATUS, reason=f"job {report.state}", **describe(answer), **said)

    def _end(self, draft: Draft, report: JobReport, after: LocalState, evidence: Evidence) -> None:
        draft.set(misses=0, reconcile_until=None)
        reason = f"the status read reports {report.state}"
        if after is _S.RESULT_COLLECTING:
            self.begin_collecting(draft, report)
        elif report.error is not None:
            draft.set(explanation=report.error)
            reason += f" ({report.error})"
        draft.move(after, evidence, cause="a status read", reason=reason)

    def _reread(self, draft: Draft, answer: Answer, report: JobReport) -> None:
        """While collecting, a status read only brings a fresh address of the result (W7.4)."""
        if report.phase is Phase.SUCCEEDED and report.result is not None:
            draft.set(result=report.result, reread_result=False, next_attempt_at=draft.now)
            draft.outcome(Call.STATUS, reason="read again for the result's address", **describe(answer))
            return
        reason = f"job {report.state} after success: an old answer; the record stays"
        draft.outcome(Call.STATUS, reason=reason, **describe(answer), **self.try_again(draft, answer))

    def _missing(self, draft: Draft, answer: Answer, meaning: Missing) -> None:
        operation = draft.operation
        accepted = operation.accepted_at if operation.accepted_at is not None else draft.now
        young = draft.now < accepted + self.terms.status.not_found_grace_s
        why = (
            "within the grace period after accept" if young else "the provider accepted this job, so it is asked again"
        )
        self._nothing_learned(draft, answer, "not_found", f"{meaning.detail}; {why}")

    def _nothing_learned(self, draft: Draft, answer: Answer | NoAnswer, error: str, detail: str) -> None:
        """A failed read is not a failed job: say so and ask again later."""
        self.failed(draft, error)
        facts = {**describe(answer), **self.try_again(draft, answer), "error": error}
        draft.outcome(Call.STATUS, reason=f"nothing learned: {detail}", **facts)
