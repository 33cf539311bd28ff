"""What to do next with an operation, and what each thing done does to its record (W9). Pure.

The shell around it (``reference_client.worker``) does what :meth:`Workflow.next_action` says, one action at a time:

* :class:`Send`: store :meth:`Workflow.begin`, make the call, store :meth:`Workflow.conclude`;
* :class:`Settle`: store :meth:`Workflow.settle`; no call is needed;
* :class:`Collect`: store :meth:`Workflow.collect`; the result is already here;
* :class:`Wait` and :class:`Rest`: give the lease back.

A record found with a call in flight was left behind by a worker that died: :meth:`Workflow.interrupted` comes first.

To build a client that lacks one safeguard, override one method of this class.
"""

from typing import Any, Final

import msgspec

from reference_client.adapters.protocol import Answer, NoAnswer, Request, Retrieved
from reference_client.cancelling import Cancelling
from reference_client.collection import Collecting
from reference_client.commanding import Commanding
from reference_client.config import Mechanism
from reference_client.creating import Creating, Path
from reference_client.lifecycle import Evidence, LocalState
from reference_client.observing import Observing
from reference_client.operation import Call, InFlight, Operation
from reference_client.steps import Draft, Step

__all__ = ["Action", "Collect", "Rest", "Send", "Settle", "Wait", "Workflow"]

_S = LocalState


class Send(msgspec.Struct, frozen=True):
    """Make an outside call. ``why``: for the history."""

    call: Call
    why: str


class Settle(msgspec.Struct, frozen=True, kw_only=True):
    """Move the local state on what is already known; with ``after`` None only the changes and a note are written."""

    after: LocalState | None
    evidence: Evidence | None = None
    cause: str
    reason: str
    changes: dict[str, Any] = {}


class Collect(msgspec.Struct, frozen=True):
    """Validate and keep a result that came inside a status or create answer."""


class Wait(msgspec.Struct, frozen=True):
    """Nothing to do before ``until``."""

    until: float


class Rest(msgspec.Struct, frozen=True):
    """Nothing to do until someone acts."""


Action = Send | Settle | Collect | Wait | Rest

_REST: Final = Rest()
_COLLECT: Final = Collect()
_OBSERVE: Final = Settle(
    after=_S.OBSERVING,
    evidence=Evidence.OBSERVATION_SCHEDULED,
    cause="the job is known",
    reason="observation begins, under this worker's lease",
)


class Workflow(Creating, Observing, Cancelling, Collecting, Commanding):
    """The whole workflow of one provider's operations."""

    def next_action(self, operation: Operation, now: float) -> Action:
        """Return the one thing to do now. ``operation`` has no call in flight."""
        match operation.state:
            case _S.CREATE_PENDING:
                return self._when_pending(operation, now)
            case _S.CREATE_UNKNOWN:
                return self._when_unknown(operation, now)
            case _S.RECONCILIATION:
                return self._when_reconciling(operation, now)
            case _S.ACCEPTED:
                return _stop(operation, self.timing.cancel_deadline_s, now) if operation.stop is not None else _OBSERVE
            case _S.OBSERVING:
                return self._when_observing(operation, now)
            case _S.CANCEL_REQUESTED | _S.CANCELLING:
                return self._when_cancelling(operation, now)
            case _S.RESULT_COLLECTING:
                return self._when_collecting(operation, now)
            case _S.RESULT_TIMED_OUT if operation.stop is not None:
                return _stop(operation, self.timing.cancel_deadline_s, now)
            case _S.RESULT_TIMED_OUT | _S.CANCELLATION_UNCONFIRMED:
                return _when_read_again(operation, now)
            case _:
                return _REST

    def _when_pending(self, operation: Operation, now: float) -> Action:
        if operation.stop is not None and operation.first_sent_at is None:
            return Settle(
                after=_S.WITHDRAWN,
                evidence=Evidence.STOPPED_BEFORE_SENDING,
                cause=f"the stop command of {operation.stop.who}",
                reason=f"nothing was ever sent, and nothing will be: {operation.stop.why}",
            )
        if now >= operation.create_deadline:
            return Settle(
                after=_S.CREATE_UNKNOWN,
                evidence=Evidence.AMBIGUOUS_FAILURE,
                cause="the create deadline",
                reason=f"no job id after {operation.create_attempts} attempts",
            )
        if now < operation.next_attempt_at:
            return Wait(min(operation.next_attempt_at, operation.create_deadline))
        return Send(Call.CREATE, "the create of a stored operation")

    def _when_unknown(self, operation: Operation, now: float) -> Action:
        path = self.reconciling_path(operation, now)
        if now >= operation.create_deadline or path is None:
            return Settle(
                after=_S.RECONCILIATION,
                evidence=Evidence.RECONCILING_BEGINS,
                cause="the unanswered create",
                reason="looking for a way to find out about it",
            )
        if now < operation.next_attempt_at:
            return Wait(min(operation.next_attempt_at, operation.create_deadline))
        return self._reconcile_by(path)

    def _when_reconciling(self, operation: Operation, now: float) -> Action:
        path = self.reconciling_path(operation, now)
        if now < operation.create_deadline and path is not None:
            return self._reconcile_by(path)
        if path is None and self.terms.idempotency.mechanism is Mechanism.NONE:
            reason = (
                "the provider offers neither an idempotency token nor a look-up, so at-most-once creation cannot be "
                "promised: the create is not sent again; find out at the provider whether there is a job"
            )
        elif path is None:
            reason = (
                "the token's lifetime at the provider is over and it offers no look-up: a re-send could make a second "
                "job; find out at the provider whether there is one"
            )
        elif operation.first_sent_at is None:
            reason = "the create deadline passed before the request could be sent; there is no job"
        else:
            tried = f"{operation.create_attempts} attempts"
            reason = f"the create deadline passed after {tried}; whether there is a job is unknown"
        return _rest_at(
            _S.HUMAN_DECISION_REQUIRED, Evidence.NO_WAY_TO_RECONCILE, cause="the unanswered create", reason=reason
        )

    @staticmethod
    def _reconcile_by(path: Path) -> Send:
        return Send(Call.CREATE if path is Path.RESEND else Call.LOOKUP, f"the create is unresolved: {path}")

    @staticmethod
    def _due(operation: Operation, deadline: float, now: float, why: str) -> Action:
        """Poll when the stored time has come, but look up at the deadline."""
        if now < operation.next_attempt_at:
            return Wait(min(operation.next_attempt_at, deadline))
        return Send(Call.STATUS, why)

    def _when_observing(self, operation: Operation, now: float) -> Action:
        if operation.stop is not None:
            return _stop(operation, self.timing.cancel_deadline_s, now)
        if now >= operation.result_deadline:
            reason = f"the result deadline passed; job {operation.remote_job_id} may still run; polling has ended"
            return _rest_at(_S.RESULT_TIMED_OUT, Evidence.RESULT_DEADLINE, cause="the result deadline", reason=reason)
        return self._due(operation, operation.result_deadline, now, "the poll that is due")

    def _when_cancelling(self, operation: Operation, now: float) -> Action:
        deadline = operation.cancel_deadline if operation.cancel_deadline is not None else now
        if now >= deadline:
            reason = f"the cancel deadline passed without word of how job {operation.remote_job_id} ended"
            return _rest_at(
                _S.CANCELLATION_UNCONFIRMED, Evidence.CANCEL_DEADLINE, cause="the cancel deadline", reason=reason
            )
        if self.may_call_cancel(operation):
            at = max(operation.next_cancel_at, operation.throttled_until)
            if now >= at:
                return Send(Call.CANCEL, f"{operation.stop.who if operation.stop else 'somebody'} asked for a stop")
            if at < operation.next_attempt_at:
                return Wait(min(at, deadline))
        return self._due(operation, deadline, now, "the poll that is due; a stop was asked for")

    def _when_collecting(self, operation: Operation, now: float) -> Action:
        if operation.result is not None and operation.result.inline is not None:
            return _COLLECT
        deadline = operation.collect_deadline if operation.collect_deadline is not None else now
        if now >= deadline:
            failure = f" (last: {operation.failure.error})" if operation.failure is not None else ""
            reason = f"the result could not be read in time{failure}"
            return _rest_at(
                _S.RESULT_UNAVAILABLE, Evidence.RETRIEVAL_FAILED, cause="the collecting of the result", reason=reason
            )
        if now < operation.next_attempt_at:
            return Wait(min(operation.next_attempt_at, deadline))
        if operation.reread_result:
            return Send(Call.STATUS, "a fresh address of the result is needed")
        return Send(Call.RESULT, "the job succeeded")

    # what doing it does

    def begin(self, operation: Operation, action: Send, *, worker: str, fence: int, now: float) -> Step:
        """Return the intent of a call, to be made durable before it is made."""
        draft = Draft(operation, actor=worker, now=now)
        call = action.call
        if operation.state is _S.CREATE_UNKNOWN:
            draft.move(_S.RECONCILIATION, Evidence.RECONCILING_BEGINS, cause="the unanswered create", reason=action.why)
        changes: dict[str, Any] = {"calls": operation.calls + 1}
        if call is Call.CREATE:
            attempt = changes["create_attempts"] = operation.create_attempts + 1
            if operation.first_sent_at is None:
                changes["first_sent_at"] = now
        elif call is Call.CANCEL:
            attempt = changes["cancel_calls"] = operation.cancel_calls + 1
        elif call is Call.STATUS:
            attempt = operation.polls + 1
        else:
            attempt = operation.result_reads + 1 if call is Call.RESULT else operation.create_attempts
        flight = InFlight(call=call, attempt=attempt, since=now, worker=worker, fence=fence)
        draft.set(in_flight=flight, **changes)
        return draft.intent(call, reason=action.why, attempt=attempt, number=operation.calls + 1, fence=fence).step()

    def request(self, operation: Operation) -> Request:
        """Return the request of the call in flight: for a create the same bytes and the same token, each time
        (W2.2).
        """
        adapter = self.adapter
        call = operation.in_flight.call if operation.in_flight is not None else Call.STATUS
        match call:
            case Call.CREATE:
                return adapter.create(operation)
            case Call.LOOKUP:
                return adapter.lookup(operation)
            case Call.STATUS:
                return adapter.status(operation)
            case Call.CANCEL:
                return adapter.cancel(operation)
            case Call.RESULT:
                return adapter.result(operation)

    def conclude(self, operation: Operation, answer: Answer | NoAnswer, *, actor: str, now: float) -> Step:
        """Return what became of the call in flight."""
        draft = Draft(operation, actor=actor, now=now)
        call = operation.in_flight.call if operation.in_flight is not None else Call.STATUS
        match call:
            case Call.CREATE:
                self.conclude_create(draft, answer)
            case Call.LOOKUP:
                self.conclude_lookup(draft, answer)
            case Call.STATUS:
                self.conclude_status(draft, answer)
            case Call.CANCEL:
                self.conclude_cancel(draft, answer)
            case Call.RESULT:
                self.conclude_result(draft, answer)
        return draft.set(in_flight=None).step()

    def interrupted(self, operation: Operation, *, actor: str, now: float) -> Step:
        """Return the end of a call that another worker began and never concluded: it may or may not have been made
        (W3.1).
        """
        flight = operation.in_flight
        who = f"{flight.worker}, fence {flight.fence}" if flight is not None else "a worker"
        gone = NoAnswer(error="interrupted", detail=f"{who} began this call and recorded no outcome", received_at=now)
        return self.conclude(operation, gone, actor=actor, now=now)

    def settle(self, operation: Operation, action: Settle, *, actor: str, now: float) -> Step:
        """Return the record moved on what is already known."""
        draft = Draft(operation, actor=actor, now=now).set(**action.changes)
        if action.after is None or action.evidence is None:
            draft.note(cause=action.cause, reason=action.reason)
        else:
            draft.move(action.after, action.evidence, cause=action.cause, reason=action.reason)
        return draft.step()

    def collect(self, operation: Operation, *, actor: str, now: float) -> Step:
        """Return the record with a result that came inside an answer validated and kept."""
        draft = Draft(operation, actor=actor, now=now)
        stated = operation.result
        body = stated.inline if stated is not None and stated.inline is not None else b""
        kind = stated.content_type if stated is not None else None
        self.keep(draft, Retrieved(body, kind or "application/json"))  # it came as a part of a JSON answer
        return draft.step()


def _rest_at(after: LocalState, evidence: Evidence, *, cause: str, reason: str) -> Settle:
    """Come to rest until someone acts: whoever looks at the record finds the reason there."""
    return Settle(after=after, evidence=evidence, cause=cause, reason=reason, changes={"explanation": reason})


def _stop(operation: Operation, cancel_deadline_s: float, now: float) -> Settle:
    """Turn a recorded stop command into the local state that acts on it (W6.1)."""
    stop = operation.stop
    who, why, expected = (stop.who, stop.why, stop.expected) if stop is not None else ("somebody", "", "")
    return Settle(
        after=_S.CANCEL_REQUESTED,
        evidence=Evidence.STOP_COMMAND,
        cause=f"the stop command of {who}",
        reason=f"{why}; expected: {expected}",
        changes={"cancel_deadline": now + cancel_deadline_s, "reconcile_until": None, "misses": 0},
    )


def _when_read_again(operation: Operation, now: float) -> Action:
    """At rest, unless somebody asked for one more reading."""
    if operation.reconcile_until is None:
        return _REST
    if now >= operation.reconcile_until:
        return Settle(
            after=None,
            cause="a reconciliation that was asked for",
            reason="no usable status answer came in time",
            changes={"reconcile_until": None},
        )
    if now < operation.next_attempt_at:
        return Wait(min(operation.next_attempt_at, operation.reconcile_until))
    return Send(Call.STATUS, "a reconciliation was asked for")
