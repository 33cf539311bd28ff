"""A store that tells an observer of each write, before it is made and once it is durable.

Both forms in which this client runs under test use it; a refusal raised by the observer is the store's own.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

from reference_client.audit import Head, Link, Standing
from reference_client.operation import Command, EventNotice, HistoryEntry, Operation
from reference_client.steps import Step
from reference_client.stores.protocol import Claimed, Lease, LeaseLost, MakeEntry, OperationStore, StoreRefused

__all__ = ["ObservedStore", "Observer"]


class Observer(Protocol):
    """Told of writes and leases. ``recording`` may raise ``StoreRefused``, and the write is not made."""

    async def recording(self, entry: HistoryEntry) -> None: ...

    async def recorded(self, entry: HistoryEntry) -> None: ...

    async def lease(self, lease: Lease, what: str, lasts_s: float) -> None: ...


class ObservedStore:
    """Passes everything on to ``inner``, and tells ``observer``."""

    def __init__(self, inner: OperationStore, observer: Observer) -> None:
        self._inner = inner
        self._observer = observer

    async def _before(self, entries: Sequence[HistoryEntry]) -> None:
        for entry in entries:
            await self._observer.recording(entry)

    async def _after(self, entries: Sequence[HistoryEntry]) -> None:
        for entry in entries:
            await self._observer.recorded(entry)

    async def _lease(self, lease: Lease, what: str) -> None:
        lasts_s = 0.0 if what in {"released", "lost"} else lease.until - await self._inner.now()
        await self._observer.lease(lease, what, lasts_s)

    async def now(self) -> float:
        return await self._inner.now()

    async def add(self, step: Step) -> Operation:
        await self._before(step.entries)
        operation = await self._inner.add(step)
        if operation is step.operation:
            await self._after(step.entries)
        return operation

    async def load(self, operation_id: str) -> Operation:
        return await self._inner.load(operation_id)

    async def operations(self) -> Sequence[Operation]:
        return await self._inner.operations()

    async def history(self, operation_id: str) -> Sequence[HistoryEntry]:
        return await self._inner.history(operation_id)

    async def result(self, operation_id: str) -> bytes | None:
        return await self._inner.result(operation_id)

    async def claim(self, owner: str, lease_s: float) -> Claimed | None:
        claimed = await self._inner.claim(owner, lease_s)
        if claimed is not None:
            await self._lease(claimed.lease, "taken")
        return claimed

    async def due_in_s(self) -> float | None:
        return await self._inner.due_in_s()

    async def renew(self, lease: Lease, lasts_s: float) -> Lease:
        try:
            renewed = await self._inner.renew(lease, lasts_s)
        except LeaseLost:
            await self._lease(lease, "lost")
            raise
        if renewed.until != lease.until:
            await self._lease(renewed, "renewed")
        return renewed

    async def commit(self, lease: Lease, step: Step, *, taken: Sequence[int] = (), lasts_s: float = 0.0) -> Lease:
        await self._before(step.entries)
        try:
            renewed = await self._inner.commit(lease, step, taken=taken, lasts_s=lasts_s)
        except LeaseLost:
            await self._lease(lease, "lost")
            raise
        if renewed.until != lease.until:
            await self._lease(renewed, "renewed")
        await self._after(step.entries)
        return renewed

    async def release(
        self, lease: Lease, step: Step | None, *, due_at: float | None, taken: Sequence[int] = ()
    ) -> None:
        """Tell of the release before it takes effect, so that nobody is seen to take a lease that is still held."""
        if step is not None:
            lease = await self.commit(lease, step, taken=taken)
        await self._lease(lease, "released")
        # A lease that ran out while its end was being told of has ended all the same, and one that cannot be given
        # back will end by itself.
        with suppress(LeaseLost, StoreRefused):
            await self._inner.release(lease, None, due_at=due_at)

    async def give(self, operation_id: str, command: Command, make_entry: MakeEntry) -> HistoryEntry:
        operation = await self._inner.load(operation_id)
        await self._observer.recording(make_entry(operation, await self._inner.now()))
        entry = await self._inner.give(operation_id, command, make_entry)
        await self._observer.recorded(entry)
        return entry

    async def take_event(self, notice: EventNotice, make_entry: MakeEntry) -> HistoryEntry | None:
        entry = await self._inner.take_event(notice, make_entry)
        if entry is not None:
            await self._observer.recorded(entry)
        return entry

    async def links(self) -> Sequence[Link]:
        return await self._inner.links()

    async def standing(self) -> Sequence[Standing]:
        return await self._inner.standing()

    async def head(self) -> Head:
        return await self._inner.head()

    async def close(self) -> None:
        await self._inner.close()
