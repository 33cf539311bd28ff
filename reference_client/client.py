"""One running client: a worker, what people may tell it, and what it says when asked.

The command line and both forms in which this client runs under test are built from this one class.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from reference_client.operation import Command, Decision, HistoryEntry, Operation, Reconcile, Stop
from reference_client.worker import Worker
from reference_client.workflow import Workflow

__all__ = ["ReferenceClient", "Summary", "summarise"]


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """What the client says of one operation, read from its durable record alone (W5.4)."""

    operation: str
    state: str
    remote_job: str | None = None
    result_sha256: str | None = None
    records: int | None = None
    failed_items: int | None = None
    explanation: str | None = None


class ReferenceClient:
    """A worker and its desk."""

    def __init__(self, worker: Worker, *, target: str) -> None:
        self._worker = worker
        self._target = target

    @property
    def _workflow(self) -> Workflow:
        return self._worker.workflow

    async def submit(self, operation_id: str, request: Mapping[str, Any], *, authorised_by: str) -> Operation:
        """Make an operation durable, and have it worked on. The same request once more changes nothing.

        Raises:
            OperationConflict: if the operation is known with another request (W1.7).
            RequestError: if the provider's adapter could never send it.
            StoreRefused: if it could not be made durable; nothing was taken.
        """
        store = self._worker.store
        step = self._workflow.open(
            operation_id,
            request,
            target=self._target,
            authorised_by=authorised_by,
            actor=self._worker.name,
            now=await store.now(),
        )
        operation = await store.add(step)
        if operation is not step.operation:
            self._workflow.same_request(operation, request)
        self._worker.wake()
        return operation

    async def cancel(self, operation_id: str, *, who: str, why: str) -> HistoryEntry:
        """Record a stop command (W6.1). Raises: UnknownOperation, StoreRefused."""
        return await self._give(operation_id, Stop(who=who, why=why))

    async def reconcile(self, operation_id: str, *, who: str, why: str) -> HistoryEntry:
        """Record that a resting operation is to be looked at again. Raises: UnknownOperation, CommandRefused,
        StoreRefused.
        """
        return await self._give(operation_id, Reconcile(who=who, why=why))

    async def decide(self, operation_id: str, decision: Decision) -> HistoryEntry:
        """Record what a person decided. Raises: UnknownOperation, CommandRefused, StoreRefused."""
        return await self._give(operation_id, decision)

    async def _give(self, operation_id: str, command: Command) -> HistoryEntry:
        workflow, actor = self._workflow, self._worker.name

        def entry(operation: Operation, now: float) -> HistoryEntry:
            workflow.check_command(operation, command)
            return workflow.given(operation, command, actor=actor, now=now)

        given = await self._worker.store.give(operation_id, command, entry)
        self._worker.wake()
        return given

    async def summaries(self) -> Sequence[Summary]:
        """Return what there is to say of each operation."""
        return [summarise(operation) for operation in await self._worker.store.operations()]

    async def run(self) -> None:
        """Work until stopped."""
        await self._worker.run()

    def stop(self) -> None:
        """End in good order: see :meth:`Worker.stop`."""
        self._worker.stop()


def summarise(operation: Operation) -> Summary:
    """Say of a record what a person or a program asks first."""
    collected = operation.collected
    return Summary(
        operation=operation.operation_id,
        state=operation.state,
        remote_job=operation.remote_job_id,
        result_sha256=collected.sha256 if collected is not None else None,
        records=collected.records if collected is not None else None,
        failed_items=collected.failed_items if collected is not None else None,
        explanation=operation.explanation,
    )
