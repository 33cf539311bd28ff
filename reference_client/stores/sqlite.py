"""Operations in one SQLite file: WAL, ``synchronous=FULL``, each write one immediate transaction.

The calls block the event loop for the length of a commit. A thread hop would cost as much as most of them, and
several workers of one process in simulation stay deterministic this way.
"""

import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from reference_client.audit import GENESIS, Head, Link, Standing, decode_entry
from reference_client.operation import Command, EventNotice, HistoryEntry, Operation
from reference_client.steps import Step
from reference_client.stores.alike import (
    chained,
    claimed,
    decode_command,
    decode_operation,
    encode,
    finds_job,
    lost,
    named_lease,
    result_to_keep,
    standings,
    unknown,
)
from reference_client.stores.protocol import (
    Claimed,
    Lease,
    LeaseLost,
    MakeEntry,
)
from reference_client.stores.sqlite_database import REFUSALS, opened

__all__ = ["SQLiteStore"]

_HEAD: Final = "SELECT number, hash FROM history ORDER BY number DESC LIMIT 1"
_WAITING: Final = "EXISTS (SELECT 1 FROM command c WHERE c.operation_id = :id AND c.taken = 0)"

_CLAIM: Final = """
    UPDATE operation SET lease_owner = :owner, lease_fence = lease_fence + 1, lease_until = :until, wake_at = :until
    WHERE operation_id = (SELECT operation_id FROM operation WHERE wake_at <= :now ORDER BY wake_at LIMIT 1)
    RETURNING record, lease_fence
"""
_FENCED: Final = "operation_id = :id AND lease_owner = :owner AND lease_fence = :fence AND lease_until > :now"
_KEEP: Final = f"""
    UPDATE operation SET state = :state, version = :version, remote_job_id = :job, record = :record,
        history_number = :number, lease_until = max(lease_until, :until), wake_at = max(lease_until, :until)
    WHERE {_FENCED} AND version = :version - 1 RETURNING lease_until
"""  # noqa: S608  constants only
_LEAVE: Final = f"""
    UPDATE operation SET state = :state, version = :version, remote_job_id = :job, record = :record,
        history_number = :number, lease_owner = NULL, lease_until = NULL,
        wake_at = CASE WHEN {_WAITING} THEN :now ELSE :due END
    WHERE {_FENCED} AND version = :version - 1 RETURNING 1
"""  # noqa: S608  constants only
_RELEASE: Final = f"""
    UPDATE operation SET lease_owner = NULL, lease_until = NULL, wake_at = CASE WHEN {_WAITING} THEN :now ELSE :due END
    WHERE {_FENCED} RETURNING 1
"""  # noqa: S608  constants only

_MADE: Final = """
    SELECT lease_until FROM operation WHERE operation_id = ? AND lease_fence = ? AND version = ? AND record = ?
"""


class SQLiteStore:
    """One SQLite database of operations.

    Args:
        path: the file, or ``":memory:"`` for one that lives as long as this object.
        now: the store's clock; all workers on one file run on the file's machine, so it is that machine's.
        busy_timeout_s: how long a write waits for another process's.

    Raises:
        SchemaTooNew: if a newer version of this program wrote the file.
        StoreRefused: if the file cannot be opened.
    """

    def __init__(self, path: Path | str, *, now: Callable[[], float] = time.time, busy_timeout_s: float = 2.0) -> None:
        self._now = now
        self._database = opened(str(path), busy_timeout_s)
        self._db = self._database.connection

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """One immediate transaction: all of it is durable when this ends, or none."""
        with REFUSALS, self._database.immediate():
            yield self._db

    def _append(self, entries: Iterable[HistoryEntry]) -> int:
        """Chain entries on, and return the number of the last entry in the store."""
        db = self._db
        row = db.execute(_HEAD).fetchone()
        head = GENESIS if row is None else Head(*row)
        number = head.number
        for link in chained(head, entries):
            number = link.number
            db.execute(
                "INSERT INTO history VALUES (?, ?, ?, ?, ?, ?)",
                (number, link.operation_id, link.before, link.after, link.entry, link.hash),
            )
        return number

    async def now(self) -> float:
        return self._now()

    async def add(self, step: Step) -> Operation:
        operation = step.operation
        with self._transaction() as db:
            known = db.execute(
                "SELECT record FROM operation WHERE operation_id = ?", (operation.operation_id,)
            ).fetchone()
            if known is not None:
                return decode_operation(known[0])
            number = self._append(step.entries)
            db.execute(
                "INSERT INTO operation (operation_id, state, version, wake_at, history_number, record)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                (
                    operation.operation_id,
                    operation.state,
                    operation.version,
                    self._now(),
                    number,
                    encode(operation),
                ),
            )
        return operation

    async def load(self, operation_id: str) -> Operation:
        with REFUSALS:
            return self._load(operation_id)

    def _load(self, operation_id: str) -> Operation:
        row = self._db.execute("SELECT record FROM operation WHERE operation_id = ?", (operation_id,)).fetchone()
        if row is None:
            raise unknown(operation_id)
        return decode_operation(row[0])

    async def operations(self) -> Sequence[Operation]:
        with REFUSALS:
            rows = self._db.execute("SELECT record FROM operation ORDER BY operation_id").fetchall()
        return [decode_operation(record) for (record,) in rows]

    def shelf(self) -> tuple[list[tuple[Operation, str | None, float | None, float | None]], list[Any]]:
        """Return every record with its lease's owner and end and the time at which it is due; and the commands and
        events that wait or were known before. For those who watch a store in the same process.
        """
        rows = self._db.execute(
            "SELECT record, lease_owner, lease_until, wake_at FROM operation ORDER BY operation_id"
        ).fetchall()
        waiting = self._db.execute("SELECT operation_id, command FROM command WHERE taken = 0 ORDER BY number")
        commands = [(operation, decode_command(command)) for operation, command in waiting]
        events = self._db.execute("SELECT event_id, operation_id FROM event ORDER BY event_id").fetchall()
        return [(decode_operation(record), *lease) for record, *lease in rows], [*commands, *events]

    async def history(self, operation_id: str) -> Sequence[HistoryEntry]:
        with REFUSALS:
            self._load(operation_id)
            rows = self._db.execute(
                "SELECT entry FROM history WHERE operation_id = ? ORDER BY number", (operation_id,)
            ).fetchall()
        return [decode_entry(entry) for (entry,) in rows]

    async def result(self, operation_id: str) -> bytes | None:
        with REFUSALS:
            row = self._db.execute("SELECT body FROM result WHERE operation_id = ?", (operation_id,)).fetchone()
        return None if row is None else bytes(row[0])

    async def claim(self, owner: str, lease_s: float) -> Claimed | None:
        now = self._now()
        with REFUSALS:
            # Looking costs no write lock; most looks find nothing.
            due = self._db.execute("SELECT 1 FROM operation WHERE wake_at <= ? LIMIT 1", (now,)).fetchone()
        if due is None:
            return None
        with self._transaction() as db:
            now = self._now()  # the write lock may have been long in coming
            row = db.execute(_CLAIM, {"owner": owner, "until": now + lease_s, "now": now}).fetchone()
            if row is None:
                return None
            operation = decode_operation(row[0])
            waiting = db.execute(
                "SELECT number, command FROM command WHERE operation_id = ? AND taken = 0 ORDER BY number",
                (operation.operation_id,),
            ).fetchall()
        lease = Lease(operation_id=operation.operation_id, owner=owner, fence=row[1], until=now + lease_s)
        return claimed(lease, operation, waiting)

    async def due_in_s(self) -> float | None:
        with REFUSALS:
            (wake_at,) = self._db.execute("SELECT min(wake_at) FROM operation WHERE wake_at IS NOT NULL").fetchone()
        return None if wake_at is None else max(0.0, wake_at - self._now())

    async def renew(self, lease: Lease, lasts_s: float) -> Lease:
        now = self._now()
        key = {**named_lease(lease), "now": now}
        with REFUSALS:
            row = self._db.execute(f"SELECT lease_until FROM operation WHERE {_FENCED}", key).fetchone()  # noqa: S608
        if row is None:
            raise lost(lease)
        if row[0] >= now + lasts_s:
            return lease
        with self._transaction() as db:
            key["now"] = now = self._now()  # the write lock may have been long in coming
            row = db.execute(
                f"UPDATE operation SET lease_until = :until, wake_at = :until WHERE {_FENCED} RETURNING lease_until",  # noqa: S608
                {**key, "until": now + lasts_s},
            ).fetchone()
        if row is None:
            raise lost(lease)
        return msgspec.structs.replace(lease, until=row[0])

    async def commit(self, lease: Lease, step: Step, *, taken: Sequence[int] = (), lasts_s: float = 0.0) -> Lease:
        try:
            with self._transaction():
                row = self._write(_KEEP, lease, step, taken, {"until": self._now() + lasts_s})
        except LeaseLost:
            return self._made_before(lease, step)
        return msgspec.structs.replace(lease, until=row[0])

    async def release(
        self, lease: Lease, step: Step | None, *, due_at: float | None, taken: Sequence[int] = ()
    ) -> None:
        if step is not None:
            try:
                with self._transaction():
                    self._write(_LEAVE, lease, step, taken, {"due": due_at})
            except LeaseLost:
                self._made_before(lease, step)
            return
        with self._transaction() as db:
            told = {**named_lease(lease), "now": self._now(), "due": due_at}
            if db.execute(_RELEASE, told).fetchone() is None:
                raise lost(lease)

    def _write(
        self, statement: str, lease: Lease, step: Step, taken: Sequence[int], parameters: dict[str, Any]
    ) -> tuple[Any, ...]:
        db, operation = self._db, step.operation
        number = self._append(step.entries)
        for each in taken:
            db.execute("UPDATE command SET taken = 1 WHERE number = ?", (each,))
        if finds_job(step):
            self._tell_kept_events(operation)
        result = result_to_keep(step)
        if result is not None:
            db.execute("INSERT OR REPLACE INTO result VALUES (?, ?)", (operation.operation_id, result))
        row = db.execute(
            statement,
            {
                **named_lease(lease),
                "now": self._now(),
                "state": operation.state,
                "version": operation.version,
                "job": operation.remote_job_id,
                "record": encode(operation),
                "number": number,
                **parameters,
            },
        ).fetchone()
        if row is None:
            raise lost(lease)  # which rolls the entries back as well
        found: tuple[Any, ...] = row
        return found

    def _made_before(self, lease: Lease, step: Step) -> Lease:
        """Return if this very step is on record, made under this lease. Raises: LeaseLost."""
        key = (lease.operation_id, lease.fence, step.operation.version, encode(step.operation))
        with REFUSALS:
            row = self._db.execute(_MADE, key).fetchone()
        if row is None:
            raise lost(lease)
        return lease if row[0] is None else msgspec.structs.replace(lease, until=row[0])

    def _tell_kept_events(self, operation: Operation) -> None:
        """Hand over the events that came before the job had an operation."""
        kept = self._db.execute(
            "UPDATE event SET operation_id = ? WHERE remote_job_id = ? AND operation_id IS NULL RETURNING notice",
            (operation.operation_id, operation.remote_job_id),
        ).fetchall()
        for (notice,) in kept:
            self._db.execute(
                "INSERT INTO command (operation_id, command) VALUES (?, ?)", (operation.operation_id, notice)
            )

    async def give(self, operation_id: str, command: Command, make_entry: MakeEntry) -> HistoryEntry:
        with self._transaction():
            return self._give(self._load(operation_id), command, make_entry)

    def _give(self, operation: Operation, command: Command, make_entry: MakeEntry) -> HistoryEntry:
        now = self._now()
        entry = make_entry(operation, now)
        number = self._append((entry,))
        self._db.execute(
            "INSERT INTO command (operation_id, command) VALUES (?, ?)", (operation.operation_id, encode(command))
        )
        self._db.execute(
            "UPDATE operation SET history_number = ?, wake_at = CASE WHEN lease_owner IS NULL THEN ? ELSE wake_at END"
            " WHERE operation_id = ?",
            (number, now, operation.operation_id),
        )
        return entry

    async def take_event(self, notice: EventNotice, make_entry: MakeEntry) -> HistoryEntry | None:
        with self._transaction() as db:
            row = db.execute(
                "SELECT record FROM operation WHERE remote_job_id = ? ORDER BY operation_id LIMIT 1",
                (notice.remote_job_id,),
            ).fetchone()
            operation = None if row is None else decode_operation(row[0])
            new = db.execute(
                "INSERT OR IGNORE INTO event VALUES (?, ?, ?, ?) RETURNING 1",
                (
                    notice.event_id,
                    notice.remote_job_id,
                    encode(notice),
                    None if operation is None else operation.operation_id,
                ),
            ).fetchone()
            if new is None or operation is None:
                return None
            return self._give(operation, notice, make_entry)

    async def links(self) -> Sequence[Link]:
        with REFUSALS:
            rows = self._db.execute(
                "SELECT number, operation_id, before, after, CAST(entry AS BLOB), CAST(hash AS TEXT)"
                " FROM history ORDER BY number"
            ).fetchall()
        return [Link(*row) for row in rows]

    async def standing(self) -> Sequence[Standing]:
        with REFUSALS:
            rows = self._db.execute("SELECT operation_id, state, history_number, record FROM operation").fetchall()
        return standings(rows)

    async def head(self) -> Head:
        with REFUSALS:
            row = self._db.execute(_HEAD).fetchone()
        return GENESIS if row is None else Head(*row)

    async def close(self) -> None:
        self._database.close()
