"""Collecting a result: retrieving it, checking it against everything the provider stated, and what follows (W7). Pure.

Writing large results to files is the worker's.
"""

import hashlib
from typing import Final

import msgspec

from reference_client.adapters.protocol import Answer, Gone, Moved, NoAnswer, NotYet, ProviderAdapter, Retrieved
from reference_client.lifecycle import Evidence, LocalState
from reference_client.operation import Call, CollectedResult, Operation, ResultReference
from reference_client.scheduling import Scheduling, describe
from reference_client.schema import ResultSchema
from reference_client.steps import Draft

__all__ = ["Collecting", "judge_result"]

_REREADS: Final = 3
"""How often the job is read again for a fresh address of its result before the result counts as unavailable."""

_LISTED_FAILURES: Final = 100

_NOTHING_STATED: Final = ResultReference()


def judge_result(
    adapter: ProviderAdapter, operation: Operation, retrieved: Retrieved, *, location: str
) -> CollectedResult:
    """Compare a result with all that was stated of it, and count its items (W7.2, W7.5).

    ``problems`` of the answer is empty when it is valid. A result of which nothing was stated must still read as a
    result.
    """
    stated = operation.result or _NOTHING_STATED
    digest = hashlib.sha256(retrieved.body).hexdigest()
    size = len(retrieved.body)
    records, failed, problems = adapter.validate_result(operation, retrieved.body)
    found = list(problems)
    expected_type = (stated.content_type or "application/json").partition(";")[0].strip().lower()
    actual_type = (retrieved.content_type or "").partition(";")[0].strip().lower()
    if actual_type != expected_type:
        found.append(f"content type {actual_type or 'none'}, stated {expected_type}")
    if stated.size_bytes is not None and size != stated.size_bytes:
        found.append(f"{size} bytes, stated {stated.size_bytes}")
    for source, value in (("status", stated.sha256), ("Content-Digest", retrieved.sha256)):
        if value is not None and value.lower() != digest:
            found.append(f"SHA-256 {digest}, stated in {source} {value}")
    if stated.records is not None and records is not None and records != stated.records:
        found.append(f"{records} records, stated {stated.records}")
    if stated.failed_items is not None and records is not None and len(failed) != stated.failed_items:
        found.append(f"{len(failed)} failed items, stated {stated.failed_items}")
    return CollectedResult(
        location=location,
        sha256=digest,
        size_bytes=size,
        content_type=retrieved.content_type,
        records=records,
        failed_items=len(failed) if records is not None else None,
        failed_references=failed[:_LISTED_FAILURES],
        problems=tuple(found),
    )


class Collecting(Scheduling):
    """From remote success to a validated result, or to the plain statement that there is none."""

    inline_limit_bytes: int = 1 << 20
    """Larger results go to a file (W7.3)."""

    result_schema: ResultSchema | None = None
    """What every result must meet beside what the adapter checks; None: nothing more."""

    def conclude_result(self, draft: Draft, answer: Answer | NoAnswer) -> None:
        """Apply what a result read brought."""
        draft.set(result_reads=draft.operation.result_reads + 1)
        if isinstance(answer, NoAnswer):
            self._not_retrieved(draft, answer, answer.error, answer.detail)
            return
        meaning = self.adapter.read_result(answer)
        match meaning:
            case Retrieved():
                self.keep(draft, meaning)
                draft.outcome(Call.RESULT, reason="retrieved", **describe(answer))
            case NotYet():
                self._not_retrieved(draft, answer, "not_finished", meaning.detail)
            case Gone():
                self._gone(draft, answer, meaning)
            case Moved(path=str() as path) if draft.operation.result_rereads < _REREADS:
                stated = draft.operation.result or _NOTHING_STATED
                moved = ResultReference(
                    path=path,
                    content_type=stated.content_type,
                    size_bytes=stated.size_bytes,
                    sha256=stated.sha256,
                    records=stated.records,
                    failed_items=stated.failed_items,
                )
                draft.set(result=moved, result_rereads=draft.operation.result_rereads + 1, next_attempt_at=draft.now)
                draft.outcome(Call.RESULT, reason=f"moved: {meaning.detail}", **describe(answer))
            case Moved():
                self._not_retrieved(draft, answer, "redirected", meaning.detail)
            case _:
                self._not_retrieved(draft, answer, meaning.error, meaning.detail)

    def keep(self, draft: Draft, retrieved: Retrieved) -> None:
        """Validate a result and keep it, whatever the verdict: what was retrieved once may not be had again (W7.4)."""
        operation = draft.operation
        large = len(retrieved.body) > self.inline_limit_bytes
        location = f"file:{hashlib.sha256(retrieved.body).hexdigest()}" if large else "store"
        collected = self.judge(operation, retrieved, location)
        draft.result = retrieved.body
        reference = operation.result
        if reference is not None and reference.inline is not None:
            # The bytes lie beside the record now; the record itself stays small.
            draft.set(
                result=ResultReference(
                    content_type=reference.content_type,
                    size_bytes=reference.size_bytes,
                    sha256=reference.sha256,
                    records=reference.records,
                    failed_items=reference.failed_items,
                )
            )
        facts = {
            "sha256": collected.sha256,
            "size_bytes": collected.size_bytes,
            "records": collected.records,
            "failed_items": collected.failed_items,
            "failed_references": list(collected.failed_references) or None,
            "location": location,
        }
        draft.set(collected=collected, failure=None)
        if collected.problems:
            draft.set(explanation="; ".join(collected.problems))
            draft.move(
                LocalState.RESULT_VALIDATION_FAILED,
                Evidence.VALIDATION_FAILED,
                cause="the result as retrieved",
                reason="not what was stated: " + "; ".join(collected.problems),
                **facts,
            )
            return
        count = "" if collected.records is None else f": {collected.records} records, {collected.failed_items} failed"
        draft.set(explanation=None)
        draft.move(
            LocalState.SUCCEEDED,
            Evidence.RESULT_VALIDATED,
            cause="the result as retrieved",
            reason=f"retrieved and validated{count}",
            **facts,
        )

    def judge(self, operation: Operation, retrieved: Retrieved, location: str) -> CollectedResult:
        """Judge a result (W7.2)."""
        judged = judge_result(self.adapter, operation, retrieved, location=location)
        if self.result_schema is None:
            return judged
        broken = self.result_schema.problems(retrieved.body)
        return msgspec.structs.replace(judged, problems=judged.problems + broken)

    def _gone(self, draft: Draft, answer: Answer, meaning: Gone) -> None:
        operation = draft.operation
        if self.terms.result.kind != "one_time" and operation.result_rereads < _REREADS:
            self.failed(draft, "gone")
            draft.set(reread_result=True, result_rereads=operation.result_rereads + 1)
            reason = f"gone: {meaning.detail}; the job is read again for a fresh address"
            draft.outcome(Call.RESULT, reason=reason, **describe(answer), **self.try_again(draft, answer))
            return
        self.unavailable(draft, f"the provider no longer hands the result out: {meaning.detail}")
        draft.outcome(Call.RESULT, reason=f"gone: {meaning.detail}", **describe(answer))

    @staticmethod
    def unavailable(draft: Draft, reason: str) -> None:
        """The job succeeded and its result cannot be had (W7.6)."""
        draft.set(explanation=reason)
        draft.move(
            LocalState.RESULT_UNAVAILABLE,
            Evidence.RETRIEVAL_FAILED,
            cause="the collecting of the result",
            reason=reason,
        )

    def _not_retrieved(self, draft: Draft, answer: Answer | NoAnswer, error: str, detail: str) -> None:
        self.failed(draft, error)
        facts = {**describe(answer), **self.try_again(draft, answer), "error": error}
        draft.outcome(Call.RESULT, reason=f"not retrieved: {detail}", **facts)
