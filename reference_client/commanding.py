"""What people and verified events may tell an operation, and what that does to its record (W4.7, W5, W6). Pure.

A command is durable from the moment it is given (:meth:`Commanding.given` is its history entry). The owner of the
lease takes it up (:meth:`Commanding.take_up`), so the record has one writer at a time.
"""

from typing import Any, Final

from reference_client.lifecycle import AT_REST, FINAL, Evidence, LocalState
from reference_client.operation import Command, Decision, EventNotice, HistoryEntry, Operation, Reconcile, Stop
from reference_client.scheduling import Scheduling
from reference_client.steps import Draft, Step

__all__ = ["CommandRefused", "Commanding"]

_S = LocalState

_STOP_ACTS: Final = frozenset(
    {
        _S.CREATE_PENDING,
        _S.CREATE_UNKNOWN,
        _S.RECONCILIATION,
        _S.ACCEPTED,
        _S.OBSERVING,
        _S.RESULT_TIMED_OUT,
        _S.HUMAN_DECISION_REQUIRED,
    }
)
"""Where a stop command can still change anything; before a job is known it is kept (W6.3)."""

_NEEDS_JOB: Final = frozenset(
    {
        _S.ACCEPTED,
        _S.OBSERVING,
        _S.CANCEL_REQUESTED,
        _S.CANCELLING,
        _S.RESULT_COLLECTING,
        _S.RESULT_TIMED_OUT,
        _S.CANCELLATION_UNCONFIRMED,
    }
)


class CommandRefused(ValueError):
    """A command that makes no sense for the operation as it is. Nothing was recorded."""


class Commanding(Scheduling):
    """Commands in, steps out."""

    def check_command(self, operation: Operation, command: Command) -> None:
        """Return if ``command`` can be given now.

        Raises:
            CommandRefused: otherwise, saying why.
        """
        if isinstance(command, Decision):
            if operation.state is not _S.HUMAN_DECISION_REQUIRED:
                raise CommandRefused(
                    f"{operation.operation_id} is {operation.state}; only human_decision_required awaits a decision"
                )
            if command.state is _S.HUMAN_DECISION_REQUIRED:
                raise CommandRefused("human_decision_required is where the operation is; decide for another state")
            if command.state in _NEEDS_JOB and (command.remote_job_id or operation.remote_job_id) is None:
                raise CommandRefused(f"{command.state} needs a job; say which with its job id")
            if command.state is _S.SUCCEEDED and (operation.collected is None or operation.collected.problems):
                raise CommandRefused(
                    "succeeded means retrieved and validated, and there is no such result; decide for result_collecting"
                )
        if isinstance(command, Reconcile) and operation.state in FINAL:
            raise CommandRefused(f"{operation.operation_id} is {operation.state}, which is final")

    def given(self, operation: Operation, command: Command, *, actor: str, now: float) -> HistoryEntry:
        """Return the history entry of a command, written together with it."""
        draft = Draft(operation, actor=actor, now=now)
        match command:
            case Stop():
                draft.note(
                    cause=f"stop command of {command.who}",
                    reason=command.why,
                    command="stop",
                    who=command.who,
                    expected=command.expected,
                )
            case Reconcile():
                draft.note(
                    cause=f"reconcile command of {command.who}",
                    reason=command.why,
                    command="reconcile",
                    who=command.who,
                )
            case Decision():
                draft.note(
                    cause=f"decision of {command.who}",
                    reason=command.why,
                    command="decision",
                    who=command.who,
                    decided=command.state,
                    decided_job=command.remote_job_id,
                )
            case EventNotice():
                leads_to = "a status read comes before anything else"
                if operation.state in AT_REST:
                    leads_to = f"nothing follows while the operation is {operation.state}"
                draft.note(
                    cause=f"webhook event {command.event_id}",
                    reason=f"{command.type} for job {command.remote_job_id}; {leads_to}",
                    event=command.event_id,
                    said=command.remote_state,
                )
        return draft.step().entries[0]

    def take_up(self, operation: Operation, command: Command, *, actor: str, now: float) -> Step:
        """Apply a command, by the owner of the lease. ``operation`` has no call in flight."""
        draft = Draft(operation, actor=actor, now=now)
        match command:
            case Stop():
                self._take_stop(draft, command)
            case Reconcile():
                self._take_reconcile(draft, command)
            case Decision():
                self._take_decision(draft, command)
            case EventNotice():
                self._take_event(draft)
        return draft.step()

    @staticmethod
    def _take_stop(draft: Draft, command: Stop) -> None:
        operation = draft.operation
        if operation.stop is not None:
            reason = f"a stop was asked for before, by {operation.stop.who}; one intent is enough"
            draft.note(cause=f"stop command of {command.who}", reason=reason)
        elif operation.state in _STOP_ACTS:
            draft.set(stop=command)
        else:
            draft.note(cause=f"stop command of {command.who}", reason=f"too late: the operation is {operation.state}")

    def _take_reconcile(self, draft: Draft, command: Reconcile) -> None:
        operation = draft.operation
        cause = f"reconcile command of {command.who}"
        if operation.state in {_S.RESULT_TIMED_OUT, _S.CANCELLATION_UNCONFIRMED}:
            draft.set(
                reconcile_until=draft.now + self.timing.cancel_deadline_s,
                next_attempt_at=max(draft.now, operation.throttled_until),
                misses=0,
            )
        elif operation.state in {_S.RESULT_UNAVAILABLE, _S.RESULT_VALIDATION_FAILED}:
            draft.set(
                collect_deadline=draft.now + self.timing.create_deadline_s,
                next_attempt_at=max(draft.now, operation.throttled_until),
                misses=0,
                result_rereads=0,
                reread_result=self.terms.result.kind != "one_time",
                explanation=None,
            )
            draft.move(_S.RESULT_COLLECTING, Evidence.OPERATOR_RETRY, cause=cause, reason=command.why)
        elif operation.state in AT_REST:
            draft.note(cause=cause, reason=f"the operation is {operation.state}: a decision is needed, not a reading")
        else:
            draft.note(cause=cause, reason=f"the operation is {operation.state}, which is being worked on already")

    def _take_decision(self, draft: Draft, command: Decision) -> None:
        operation = draft.operation
        cause = f"decision of {command.who}"
        try:
            self.check_command(operation, command)
        except CommandRefused as error:
            draft.note(cause=cause, reason=f"came too late: {error}")
            return
        now, timing = draft.now, self.timing
        changes: dict[str, Any] = {
            "explanation": None,
            "misses": 0,
            "next_attempt_at": max(now, operation.throttled_until),
        }
        if command.remote_job_id is not None and command.remote_job_id != operation.remote_job_id:
            changes |= {
                "remote_job_id": command.remote_job_id,
                "status_path": None,
                "accepted_at": now,
                "remote_state": None,
                "remote_rank": None,
                "remote_over": False,
            }
        if command.state in {_S.CREATE_PENDING, _S.CREATE_UNKNOWN, _S.RECONCILIATION}:
            changes["create_deadline"] = now + timing.create_deadline_s
            changes["named_in_passing"] = ()  # whoever decides knows of them; they are in the history
        elif command.state in {_S.ACCEPTED, _S.OBSERVING}:
            changes["result_deadline"] = now + timing.result_deadline_s
        elif command.state in {_S.CANCEL_REQUESTED, _S.CANCELLING}:
            changes["cancel_deadline"] = now + timing.cancel_deadline_s
            changes["stop"] = operation.stop or Stop(who=command.who, why=command.why)
            if command.state is _S.CANCEL_REQUESTED:
                changes |= {"cancel_calls": 0, "cancel_answered": False}  # a new intent
            else:
                changes["cancel_answered"] = True  # that is what cancelling means
        elif command.state is _S.RESULT_COLLECTING:
            changes["collect_deadline"] = now + timing.create_deadline_s
            changes["reread_result"] = self.terms.result.kind != "one_time"
        draft.set(**changes)
        draft.move(command.state, Evidence.HUMAN_DECISION, cause=cause, reason=command.why)

    def _take_event(self, draft: Draft) -> None:
        """An event shortens the wait and does nothing else (W4.7). A provider that asked for silence still gets it."""
        operation = draft.operation
        if operation.state in {_S.OBSERVING, _S.CANCEL_REQUESTED, _S.CANCELLING}:
            draft.set(next_attempt_at=min(operation.next_attempt_at, max(draft.now, operation.throttled_until)))
