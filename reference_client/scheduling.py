"""What every section of the workflow shares: its terms, when to try again, how an answer is described. Pure."""

from typing import TYPE_CHECKING, Any, Final

from reference_client.adapters.protocol import Answer, JobReport, NoAnswer, ProviderAdapter
from reference_client.config import Terms, Timing
from reference_client.lifecycle import Evidence, LocalState
from reference_client.operation import Failure, Operation, fingerprint
from reference_client.polling import backoff_s, read_retry_after
from reference_client.steps import Draft

if TYPE_CHECKING:
    from random import Random

__all__ = ["Scheduling", "describe"]

_THROTTLES: Final = frozenset({429, 503})

_HEADER_LIMIT: Final = 200
"""Characters of a header that a history keeps: longer than any id in use, too short to be a payload."""


class Scheduling:
    """The ground the sections stand on.

    Args:
        adapter: how the provider writes.
        terms: what the provider promises.
        timing: the client's clocks.
        random: source of jitter, and of tokens; in production ``secrets.SystemRandom()``.
    """

    def __init__(self, adapter: ProviderAdapter, *, terms: Terms, timing: Timing, random: "Random") -> None:
        self.adapter = adapter
        self.terms = terms
        self.timing = timing
        self.random = random

    def delay_s(self, answer: Answer | NoAnswer, misses: int) -> tuple[float, bool, str | None]:
        """Return how long to wait after ``answer``, whether the provider asked for it, and a note on a bad
        Retry-After (W4.2).

        Never shorter than the first back-off: a Retry-After of 0, or a date that has passed, is no leave to hammer.
        """
        timing = self.timing
        asked = read_retry_after(answer.headers, answer.received_at) if isinstance(answer, Answer) else None
        if asked is not None and asked.delay_s is not None:
            return max(asked.delay_s, timing.poll_first_s), True, None
        delay = backoff_s(
            misses,
            first_s=timing.poll_first_s,
            cap_s=timing.poll_cap_s,
            jitter=timing.poll_jitter,
            random=self.random,
        )
        return delay, False, asked.note if asked is not None else None

    def try_again(self, draft: Draft, answer: Answer | NoAnswer) -> dict[str, Any]:
        """Schedule the next attempt after an answer that moved nothing; return what the history should say of it
        (W4.3).
        """
        delay, asked, note = self.delay_s(answer, draft.operation.misses)
        at = draft.now + delay
        draft.set(misses=draft.operation.misses + 1, next_attempt_at=at)
        if asked and isinstance(answer, Answer) and answer.status in _THROTTLES:
            draft.set(throttled_until=at)
        return {"next_attempt_at": at, "wait_asked_for": asked or None, "retry_after_ignored": note}

    @staticmethod
    def failed(draft: Draft, error: str) -> None:
        """Keep class, time and attempt of a call that came to nothing usable (W3.1)."""
        flight = draft.operation.in_flight
        attempt = flight.attempt if flight is not None else 0
        draft.set(failure=Failure(error=error, at=draft.now, attempt=attempt))

    @staticmethod
    def violation(draft: Draft, *, cause: str, reason: str, unfamiliar: tuple[str, ...] = (), **facts: Any) -> None:
        """Stop everything automatic: the provider, or somebody, broke the contract (W3.4). Both answers are kept."""
        kept = draft.operation.unfamiliar_job_ids
        new = tuple(job for job in dict.fromkeys(unfamiliar) if job not in kept)
        draft.set(unfamiliar_job_ids=kept + new, explanation=reason)
        draft.move(
            LocalState.HUMAN_DECISION_REQUIRED,
            Evidence.CONTRACT_VIOLATION,
            cause=cause,
            reason=reason,
            unfamiliar_job_ids=list(kept + new) or None,
            **facts,
        )

    def begin_collecting(self, draft: Draft, job: JobReport) -> None:
        """Read the result from now on: until the result deadline, but at least as long as a create is tried (W7.1)."""
        draft.set(
            result=job.result,
            next_attempt_at=draft.now,
            collect_deadline=max(draft.operation.result_deadline, draft.now + self.timing.create_deadline_s),
        )

    @staticmethod
    def is_ours(operation: Operation, client_reference: str | None) -> bool:
        """Whether an answer that names ``client_reference`` can be about this operation (W2.3). Unnamed: it can."""
        return client_reference is None or client_reference == operation.client_reference


def describe(answer: Answer | NoAnswer) -> dict[str, Any]:
    """Return what a history may keep of an answer: its status, its ids and a digest, never its payload (W8.3)."""
    if isinstance(answer, NoAnswer):
        return {"error": answer.error, "detail": answer.detail}
    headers = answer.headers
    return {
        "status": answer.status,
        "request_id": _short(headers.get("x-request-id")),
        "retry_after": _short(headers.get("retry-after")),
        "content_type": _short(headers.get("content-type")),
        "body_sha256": fingerprint(answer.body),
    }


def _short(value: str | None) -> str | None:
    return None if value is None else value[:_HEADER_LIMIT]
