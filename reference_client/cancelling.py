"""Asking the provider to stop a job: one call per intent, and no claim from it (W6). Pure."""

from reference_client.adapters.protocol import Answer, CancelRefused, CancelTaken, NoAnswer
from reference_client.lifecycle import Evidence, LocalState
from reference_client.operation import Call, Operation
from reference_client.scheduling import Scheduling, describe
from reference_client.steps import Draft

__all__ = ["Cancelling"]


class Cancelling(Scheduling):
    """From a stop command to an answered cancel call; what came of it, only a status read tells."""

    def may_call_cancel(self, operation: Operation) -> bool:
        """Whether a cancel call is due for the intent: the first, or one more where that is documented as harmless
        (W6.4).
        """
        if self.terms.cancel.effect == "unsupported" or operation.cancel_answered or operation.remote_over:
            return False
        return operation.cancel_calls == 0 or self.terms.cancel.repeatable

    def conclude_cancel(self, draft: Draft, answer: Answer | NoAnswer) -> None:
        """Apply what the provider answered to the cancel call."""
        if isinstance(answer, NoAnswer):
            self._unanswered(draft, answer, answer.error, answer.detail)
            return
        meaning = self.adapter.read_cancel(answer)
        if isinstance(meaning, CancelTaken):
            self._taken(draft, answer, meaning)
        elif isinstance(meaning, CancelRefused):
            draft.set(cancel_answered=True)
            self._wait_at_least(draft, answer)
            draft.outcome(
                Call.CANCEL,
                reason=f"not taken ({meaning.error}): {meaning.detail}; the status will tell how the job ends",
                **describe(answer),
            )
        else:
            self._unanswered(draft, answer, meaning.error, meaning.detail)

    def _taken(self, draft: Draft, answer: Answer, meaning: CancelTaken) -> None:
        known = draft.operation.partial_effects
        draft.set(
            cancel_answered=True,
            partial_effects=known + tuple(effect for effect in meaning.partial_effects if effect not in known),
        )
        self._wait_at_least(draft, answer)
        if draft.operation.state is LocalState.CANCEL_REQUESTED:
            draft.move(
                LocalState.CANCELLING,
                Evidence.CANCEL_ANSWERED,
                cause="the provider's answer to the cancel call",
                reason=f"taken ({meaning.detail}); whether it takes effect, a status read will tell",
            )
        draft.outcome(Call.CANCEL, reason=f"taken: {meaning.detail}", **describe(answer))

    def _unanswered(self, draft: Draft, answer: Answer | NoAnswer, error: str, detail: str) -> None:
        self.failed(draft, error)
        delay, _, note = self.delay_s(answer, draft.operation.cancel_calls - 1)
        again = self.terms.cancel.repeatable
        draft.set(next_cancel_at=draft.now + delay)
        draft.outcome(
            Call.CANCEL,
            reason=f"ambiguous: {detail}; " + ("a second call is harmless" if again else "no second call is allowed"),
            **{**describe(answer), "error": error},
            next_cancel_at=draft.now + delay if again else None,
            retry_after_ignored=note,
        )

    def _wait_at_least(self, draft: Draft, answer: Answer) -> None:
        """The polling schedule goes on; a Retry-After of the cancel answer may only stretch it."""
        delay, asked, _ = self.delay_s(answer, 0)
        if asked:
            draft.set(next_attempt_at=max(draft.operation.next_attempt_at, draft.now + delay))
