"""One step of an operation: the next record, and the history entries that explain it. Pure.

A :class:`Draft` collects a step; one step is one entry, so that an entry and a durable write are the same thing. Its
first rule is W5.1: an illegal move raises, and the record that was passed in stays what it was, because records are
frozen and a draft that raised is thrown away.
"""

from typing import Any, Self

import msgspec

from reference_client import lifecycle
from reference_client.lifecycle import Evidence, LocalState
from reference_client.operation import Call, HistoryEntry, Operation

__all__ = ["Draft", "Step"]


class Step(msgspec.Struct, frozen=True):
    """What is to be made durable in one transaction. ``result``: bytes to be kept beside the record."""

    operation: Operation
    entries: tuple[HistoryEntry, ...]
    result: bytes | None = None


class Draft:
    """A step in the making.

    Args:
        operation: the record as it is stored.
        actor: who acts: a worker's name, or a person's.
        now: the store's time.
    """

    def __init__(self, operation: Operation, *, actor: str, now: float) -> None:
        self.operation = operation
        self.now = now
        self.result: bytes | None = None
        self._actor = actor
        self._entries: list[HistoryEntry] = []

    def set(self, **changes: Any) -> Self:
        """Change fields of the record, the state excepted."""
        if "state" in changes:
            raise TypeError("a state changes by move(), with evidence")
        self.operation = msgspec.structs.replace(self.operation, **changes)
        return self

    def move(self, after: LocalState, evidence: Evidence, *, cause: str, reason: str, **facts: Any) -> Self:
        """Change the local state.

        Raises:
            IllegalTransition: if the table of W5 does not allow it.
        """
        before = self.operation.state
        lifecycle.check(before, after, evidence)
        self.operation = msgspec.structs.replace(self.operation, state=after)
        self._write("transition", before, cause, reason, evidence, facts)
        return self

    def intent(self, call: Call, *, reason: str, **facts: Any) -> Self:
        """Say that an outside call is about to be made; a move in the same step says so in its own entry."""
        if self._entries:
            return self._add_to_move(begins=call, facts=facts)
        return self._write("intent", self.operation.state, str(call), reason, None, facts, begins=call)

    def outcome(self, call: Call, *, reason: str, **facts: Any) -> Self:
        """Say what became of an outside call; a move in the same step says so in its own entry."""
        if self._entries:
            return self._add_to_move(ends=call, facts=facts)
        return self._write("outcome", self.operation.state, str(call), reason, None, facts, ends=call)

    def note(self, *, cause: str, reason: str, **facts: Any) -> Self:
        """Say anything else worth knowing later."""
        return self._write("note", self.operation.state, cause, reason, None, facts)

    def step(self) -> Step:
        """Return the step, with the record's version counted up."""
        operation = msgspec.structs.replace(self.operation, version=self.operation.version + 1)
        return Step(operation, tuple(self._entries), self.result)

    def _write(
        self,
        kind: str,
        before: LocalState,
        cause: str,
        reason: str,
        evidence: Evidence | None,
        facts: dict[str, Any],
        *,
        begins: Call | None = None,
        ends: Call | None = None,
    ) -> Self:
        operation = self.operation
        self._entries.append(
            HistoryEntry(
                operation_id=operation.operation_id,
                at=self.now,
                actor=self._actor,
                kind=kind,
                before=before,
                after=operation.state,
                cause=cause,
                reason=reason,
                trace_id=operation.trace_id,
                evidence=evidence,
                begins=begins,
                ends=ends,
                remote_job_id=operation.remote_job_id,
                remote_state=operation.remote_state,
                facts={name: value for name, value in facts.items() if value is not None},
            )
        )
        return self

    def _add_to_move(self, *, begins: Call | None = None, ends: Call | None = None, facts: dict[str, Any]) -> Self:
        entry = self._entries[-1]
        merged = entry.facts | {name: value for name, value in facts.items() if value is not None}
        self._entries[-1] = msgspec.structs.replace(entry, begins=begins, ends=ends, facts=merged)
        return self
