"""What a durable store of operations promises its workers.

* One transaction a write: the record, its history entries, the lease and the commands taken up, all or nothing.
* A write that failed may be made again as it is: a step that is on record already is not made twice.
* Times and lease expiry go by the *store's* clock, so that workers with clocks of their own agree.
* Each write under a lease is fenced: it is refused unless the lease is this worker's, by number, and has not expired
(W4.1).
* History is append-only and hash-chained, and a state cannot change without an entry that says so (W5.3, W5.4).
* An operation has at most one owner; commands are kept beside it and taken up by the owner.

The errors::

    StoreError
    ├── StoreRefused    nothing is known to have been written: make the same write again later
    ├── LeaseLost       the lease is gone: drop everything, silently
    ├── UnknownOperation
    └── SchemaTooNew    written by a newer version of this program
"""

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from reference_client.audit import Head, Link, Standing
from reference_client.operation import Command, EventNotice, HistoryEntry, Operation
from reference_client.steps import Step

__all__ = [
    "Claimed",
    "Given",
    "Lease",
    "LeaseLost",
    "MakeEntry",
    "OperationStore",
    "SchemaTooNew",
    "StoreError",
    "StoreRefused",
    "UnknownOperation",
]


class StoreError(RuntimeError):
    """Something is wrong between a worker and its store."""


class StoreRefused(StoreError):
    """The store did not make this write (disk full, locked), or cannot say whether it did (connection lost)."""


class LeaseLost(StoreError):
    """The lease is not this worker's any more, or has expired."""


class UnknownOperation(StoreError):
    """There is no operation of that id."""


class SchemaTooNew(StoreError):
    """The store was written by a newer version, whose rules this one does not know."""


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """The right to act on one operation until ``until``, by the store's clock. ``fence`` grows with each lease."""

    operation_id: str
    owner: str
    fence: int
    until: float


class Given(msgspec.Struct, frozen=True):
    """A command that waits to be taken up."""

    number: int
    command: Command


class Claimed(msgspec.Struct, frozen=True):
    """An operation that is due, under a new lease, with the commands that wait for it."""

    lease: Lease
    operation: Operation
    commands: tuple[Given, ...]


MakeEntry = Callable[[Operation, float], HistoryEntry]
"""Makes the history entry of a command, from the record as it is in that transaction and the store's time."""


class OperationStore(Protocol):
    """A durable store of operations. Every method may raise :class:`StoreRefused`."""

    async def now(self) -> float:
        """Return the store's time of day, in seconds since the epoch; as last heard, if it cannot be asked just now."""
        ...

    async def add(self, step: Step) -> Operation:
        """Make a new operation durable; if its id is known, change nothing and return the record that is there."""
        ...

    async def load(self, operation_id: str) -> Operation:
        """Return a record. Raises: UnknownOperation."""
        ...

    async def operations(self) -> Sequence[Operation]:
        """Return all records, by operation id."""
        ...

    async def history(self, operation_id: str) -> Sequence[HistoryEntry]:
        """Return an operation's history, oldest first. Raises: UnknownOperation."""
        ...

    async def result(self, operation_id: str) -> bytes | None:
        """Return the result bytes kept beside a record, if any."""
        ...

    async def claim(self, owner: str, lease_s: float) -> Claimed | None:
        """Take the operation that has been due the longest and has no living lease, or return None."""
        ...

    async def due_in_s(self) -> float | None:
        """Return how long until some operation is due or some lease expires; None if nothing ever will by itself."""
        ...

    async def renew(self, lease: Lease, lasts_s: float) -> Lease:
        """Make sure that the lease is ours and lasts ``lasts_s`` from now; write only if it would not. Raises:
        LeaseLost.
        """
        ...

    async def commit(self, lease: Lease, step: Step, *, taken: Sequence[int] = (), lasts_s: float = 0.0) -> Lease:
        """Make a step durable and keep the lease, extended to last at least ``lasts_s``. Raises: LeaseLost.

        The very same step once more, under the same lease, changes nothing and is no error; so with :meth:`release`.

        ``taken``: the numbers of the commands that the step takes up.
        """
        ...

    async def release(
        self, lease: Lease, step: Step | None, *, due_at: float | None, taken: Sequence[int] = ()
    ) -> None:
        """Make a step durable, if there is one, and give the lease back. Raises: LeaseLost.

        ``due_at``: when the operation wants attention again; None: when someone acts. A command that waits makes it
        due at once.
        """
        ...

    async def give(self, operation_id: str, command: Command, make_entry: MakeEntry) -> HistoryEntry:
        """Make a command durable, with its history entry, and the operation due. Raises: UnknownOperation."""
        ...

    async def take_event(self, notice: EventNotice, make_entry: MakeEntry) -> HistoryEntry | None:
        """Keep a webhook event and tell its operation; None if it was known already, or no operation has its job yet.

        An event whose job no operation has is kept, and told to the operation that comes to have it (W4.7).
        """
        ...

    async def links(self) -> Sequence[Link]:
        """Return the whole trail, for :func:`reference_client.audit.verify`."""
        ...

    async def standing(self) -> Sequence[Standing]:
        """Return where each operation stands on record, for the same."""
        ...

    async def head(self) -> Head:
        """Return the head of the trail."""
        ...

    async def close(self) -> None:
        """Give back what the store holds open."""
        ...
