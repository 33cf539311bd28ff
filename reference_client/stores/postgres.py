"""Operations in one PostgreSQL database, for workers on several machines; psycopg 3, asynchronous.

One transaction at a time: every write chains its history entries on to the one trail of the store, so
the writes of a store come one after the other in any case. A write takes the trail's lock first and rows afterwards;
a claim and a renewal take one row and no other lock. So there is no order in which two of them wait for each other.

All lease arithmetic happens in the database, by ``clock_timestamp()`` there. What :meth:`PostgresStore.now` returns is
that clock as it was last heard, carried on by this machine's monotonic clock: it costs no round trip, and cannot fail
between an answer and the write of it.
"""

import time
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from reference_client.audit import GENESIS, Head, Link, Standing, decode_entry
from reference_client.operation import Command, EventNotice, HistoryEntry, Operation
from reference_client.steps import Step
from reference_client.stores.alike import (
    chained,
    claimed,
    decode_operation,
    encode,
    finds_job,
    lost,
    named_lease,
    result_to_keep,
    standings,
    unknown,
)
from reference_client.stores.postgres_database import Connection, Database
from reference_client.stores.protocol import (
    Claimed,
    Lease,
    LeaseLost,
    MakeEntry,
)

__all__ = ["PostgresStore"]

_HEAD: Final = "SELECT number, hash FROM history ORDER BY number DESC LIMIT 1"
_WAITING: Final = "EXISTS (SELECT 1 FROM command c WHERE c.operation_id = %(id)s AND NOT c.taken)"
# A volatile function in a WITH is evaluated once; everywhere else it would be evaluated again for each mention.
_CLOCK: Final = "WITH clock AS MATERIALIZED (SELECT store_now() AS now)"

_CLAIM: Final = f"""
    {_CLOCK}
    UPDATE operation o SET lease_owner = %(owner)s, lease_fence = lease_fence + 1,
        lease_until = clock.now + %(lasts)s, wake_at = clock.now + %(lasts)s
    FROM clock WHERE o.operation_id = (
        SELECT operation_id FROM operation WHERE wake_at <= (SELECT now FROM clock)
        ORDER BY wake_at LIMIT 1 FOR UPDATE SKIP LOCKED)
    RETURNING clock.now, o.record, o.lease_fence, o.lease_until,
        ARRAY(SELECT number FROM command c WHERE c.operation_id = o.operation_id AND NOT c.taken ORDER BY number),
        ARRAY(SELECT command FROM command c WHERE c.operation_id = o.operation_id AND NOT c.taken ORDER BY number)
"""  # noqa: S608  constants only
_HELD: Final = "operation_id = %(id)s AND lease_owner = %(owner)s AND lease_fence = %(fence)s"
_FENCED: Final = f"{_HELD} AND lease_until > clock.now"
_KEEP: Final = f"""
    {_CLOCK}
    UPDATE operation SET state = %(state)s, version = %(version)s, remote_job_id = %(job)s, record = %(record)s,
        history_number = %(number)s, lease_until = greatest(lease_until, clock.now + %(lasts)s),
        wake_at = greatest(lease_until, clock.now + %(lasts)s)
    FROM clock WHERE {_FENCED} AND version = %(version)s - 1 RETURNING clock.now, lease_until
"""  # noqa: S608  constants only
_LEAVE: Final = f"""
    {_CLOCK}
    UPDATE operation SET state = %(state)s, version = %(version)s, remote_job_id = %(job)s, record = %(record)s,
        history_number = %(number)s, lease_owner = NULL, lease_until = NULL,
        wake_at = CASE WHEN {_WAITING} THEN clock.now ELSE %(due)s END
    FROM clock WHERE {_FENCED} AND version = %(version)s - 1 RETURNING clock.now, NULL
"""  # noqa: S608  constants only
_RELEASE: Final = f"""
    {_CLOCK}
    UPDATE operation SET lease_owner = NULL, lease_until = NULL,
        wake_at = CASE WHEN {_WAITING} THEN clock.now ELSE %(due)s END
    FROM clock WHERE {_FENCED} RETURNING clock.now, NULL
"""  # noqa: S608  constants only
_LOOK: Final = f"{_CLOCK} SELECT clock.now, lease_until FROM operation, clock WHERE {_FENCED}"  # noqa: S608
_RENEW: Final = f"""
    {_CLOCK}
    UPDATE operation SET lease_until = clock.now + %(lasts)s, wake_at = clock.now + %(lasts)s
    FROM clock WHERE {_FENCED} RETURNING clock.now, lease_until
"""  # noqa: S608  constants only
_MADE: Final = """
    SELECT lease_until FROM operation
    WHERE operation_id = %s AND lease_fence = %s AND version = %s AND record = %s
"""


class PostgresStore:
    """One PostgreSQL schema of operations: the first of the connection's search path.

    It connects at its first use, and again whenever the connection was lost.

    Args:
        address: ``postgresql://…`` or any other connection string of libpq, without a password.

    Raises:
        ConfigError: if ``address`` is none, or holds a password.
    """

    def __init__(self, address: str) -> None:
        self._database = Database(address)
        self._ahead_s: float | None = None

    def _heard(self, now: float) -> None:
        self._ahead_s = now - time.monotonic()

    # the protocol

    async def now(self) -> float:
        if self._ahead_s is None:
            async with self._database.session() as connection:
                row = await (await connection.execute("SELECT store_now()")).fetchone()
                assert row is not None
                self._heard(row[0])
                return float(row[0])
        return time.monotonic() + self._ahead_s

    @staticmethod
    async def _append(connection: Connection, entries: Iterable[HistoryEntry]) -> int:
        """Chain entries on, and return the number of the last entry in the store. Only within a transaction."""
        row = await (await connection.execute(_HEAD)).fetchone()
        head = GENESIS if row is None else Head(*row)
        number = head.number
        for link in chained(head, entries):
            number = link.number
            await connection.execute(
                "INSERT INTO history VALUES (%s, %s, %s, %s, %s, %s)",
                (number, link.operation_id, link.before, link.after, link.entry, link.hash),
            )
        return number

    async def add(self, step: Step) -> Operation:
        operation = step.operation
        async with self._database.transaction() as connection:
            found = await connection.execute(
                "SELECT record FROM operation WHERE operation_id = %s", (operation.operation_id,)
            )
            known = await found.fetchone()
            if known is not None:
                return decode_operation(known[0])
            number = await self._append(connection, step.entries)
            await connection.execute(
                "INSERT INTO operation (operation_id, state, version, wake_at, history_number, record)"
                " VALUES (%s, %s, %s, store_now(), %s, %s)",
                (operation.operation_id, operation.state, operation.version, number, encode(operation)),
            )
        return operation

    async def load(self, operation_id: str) -> Operation:
        async with self._database.session() as connection:
            return await self._load(connection, operation_id)

    @staticmethod
    async def _load(connection: Connection, operation_id: str) -> Operation:
        found = await connection.execute("SELECT record FROM operation WHERE operation_id = %s", (operation_id,))
        row = await found.fetchone()
        if row is None:
            raise unknown(operation_id)
        return decode_operation(row[0])

    async def _rows(self, query: str, *arguments: object) -> list[tuple[Any, ...]]:
        async with self._database.session() as connection:
            return await (await connection.execute(query, arguments)).fetchall()

    async def operations(self) -> Sequence[Operation]:
        rows = await self._rows('SELECT record FROM operation ORDER BY operation_id COLLATE "C"')
        return [decode_operation(record) for (record,) in rows]

    async def history(self, operation_id: str) -> Sequence[HistoryEntry]:
        rows = await self._rows("SELECT entry FROM history WHERE operation_id = %s ORDER BY number", operation_id)
        if not rows:
            raise unknown(operation_id)  # an operation starts with an entry
        return [decode_entry(entry) for (entry,) in rows]

    async def result(self, operation_id: str) -> bytes | None:
        rows = await self._rows("SELECT body FROM result WHERE operation_id = %s", operation_id)
        return bytes(rows[0][0]) if rows else None

    async def claim(self, owner: str, lease_s: float) -> Claimed | None:
        async with self._database.session() as connection:
            found = await connection.execute(_CLAIM, {"owner": owner, "lasts": lease_s})
            row = await found.fetchone()
        if row is None:
            return None
        now, record, fence, until, numbers, commands = row
        self._heard(now)
        operation = decode_operation(record)
        lease = Lease(operation_id=operation.operation_id, owner=owner, fence=fence, until=until)
        # A command that was given at this very moment may be missing here: it makes the operation due at its release.
        return claimed(lease, operation, zip(numbers, commands, strict=True))

    async def due_in_s(self) -> float | None:
        rows = await self._rows("SELECT min(wake_at) - store_now() FROM operation WHERE wake_at IS NOT NULL")
        due_in_s = rows[0][0]
        return None if due_in_s is None else max(0.0, due_in_s)

    async def renew(self, lease: Lease, lasts_s: float) -> Lease:
        key = {**named_lease(lease), "lasts": lasts_s}
        async with self._database.session() as connection:
            row = await (await connection.execute(_LOOK, key)).fetchone()
            if row is not None and row[1] < row[0] + lasts_s:
                row = await (await connection.execute(_RENEW, key)).fetchone()
        if row is None:
            raise lost(lease)
        self._heard(row[0])
        return msgspec.structs.replace(lease, until=row[1])

    async def commit(self, lease: Lease, step: Step, *, taken: Sequence[int] = (), lasts_s: float = 0.0) -> Lease:
        try:
            async with self._database.transaction() as connection:
                until = await self._write(connection, _KEEP, lease, step, taken, {"lasts": lasts_s})
        except LeaseLost:
            return await self._made_before(lease, step)
        return msgspec.structs.replace(lease, until=until)

    async def release(
        self, lease: Lease, step: Step | None, *, due_at: float | None, taken: Sequence[int] = ()
    ) -> None:
        if step is not None:
            try:
                async with self._database.transaction() as connection:
                    await self._write(connection, _LEAVE, lease, step, taken, {"due": due_at})
            except LeaseLost:
                await self._made_before(lease, step)
            return
        async with self._database.transaction() as connection:
            row = await (await connection.execute(_RELEASE, {**named_lease(lease), "due": due_at})).fetchone()
            if row is None:
                raise lost(lease)
            self._heard(row[0])

    async def _write(
        self,
        connection: Connection,
        statement: str,
        lease: Lease,
        step: Step,
        taken: Sequence[int],
        more: dict[str, Any],
    ) -> Any:
        """Make a step, and return until when the lease lasts."""
        operation = step.operation
        number = await self._append(connection, step.entries)
        if taken:
            await connection.execute("UPDATE command SET taken = true WHERE number = ANY(%s)", (list(taken),))
        if finds_job(step):
            await self._tell_kept_events(connection, operation)
        result = result_to_keep(step)
        if result is not None:
            await connection.execute(
                "INSERT INTO result VALUES (%s, %s) ON CONFLICT (operation_id) DO UPDATE SET body = EXCLUDED.body",
                (operation.operation_id, result),
            )
        row = await (
            await connection.execute(
                statement,
                {
                    **named_lease(lease),
                    "state": operation.state,
                    "version": operation.version,
                    "job": _job(operation.remote_job_id),
                    "record": encode(operation),
                    "number": number,
                    **more,
                },
            )
        ).fetchone()
        if row is None:
            raise lost(lease)  # which rolls the entries back as well
        self._heard(row[0])
        return row[1]

    async def _made_before(self, lease: Lease, step: Step) -> Lease:
        """Return if this very step is on record, made under this lease. Raises: LeaseLost."""
        rows = await self._rows(_MADE, lease.operation_id, lease.fence, step.operation.version, encode(step.operation))
        if not rows:
            raise lost(lease)
        return lease if rows[0][0] is None else msgspec.structs.replace(lease, until=rows[0][0])

    @staticmethod
    async def _tell_kept_events(connection: Connection, operation: Operation) -> None:
        """Hand over the events that came before the job had an operation."""
        await connection.execute(
            "WITH kept AS (UPDATE event SET operation_id = %(id)s WHERE remote_job_id = %(job)s"
            " AND operation_id IS NULL RETURNING number, notice)"
            " INSERT INTO command (operation_id, command) SELECT %(id)s, notice FROM kept ORDER BY number",
            {"id": operation.operation_id, "job": _job(operation.remote_job_id)},
        )

    async def give(self, operation_id: str, command: Command, make_entry: MakeEntry) -> HistoryEntry:
        async with self._database.transaction() as connection:
            return await self._give(connection, await self._load(connection, operation_id), command, make_entry)

    async def _give(
        self,
        connection: Connection,
        operation: Operation,
        command: Command,
        make_entry: MakeEntry,
    ) -> HistoryEntry:
        row = await (await connection.execute("SELECT store_now()")).fetchone()
        assert row is not None
        entry = make_entry(operation, row[0])
        number = await self._append(connection, (entry,))
        await connection.execute(
            "INSERT INTO command (operation_id, command) VALUES (%s, %s)", (operation.operation_id, encode(command))
        )
        await connection.execute(
            "UPDATE operation SET history_number = %s,"
            " wake_at = CASE WHEN lease_owner IS NULL THEN store_now() ELSE wake_at END WHERE operation_id = %s",
            (number, operation.operation_id),
        )
        return entry

    async def take_event(self, notice: EventNotice, make_entry: MakeEntry) -> HistoryEntry | None:
        async with self._database.transaction() as connection:
            found = await connection.execute(
                "SELECT record FROM operation WHERE remote_job_id = %s ORDER BY operation_id LIMIT 1",
                (_job(notice.remote_job_id),),
            )
            row = await found.fetchone()
            operation = None if row is None else decode_operation(row[0])
            new = await connection.execute(
                "INSERT INTO event (event_id, remote_job_id, notice, operation_id) VALUES (%s, %s, %s, %s)"
                " ON CONFLICT (event_id) DO NOTHING",
                (
                    notice.event_id,
                    _job(notice.remote_job_id),
                    encode(notice),
                    None if operation is None else operation.operation_id,
                ),
            )
            if new.rowcount == 0 or operation is None:
                return None
            return await self._give(connection, operation, notice, make_entry)

    async def links(self) -> Sequence[Link]:
        rows = await self._rows("SELECT number, operation_id, before, after, entry, hash FROM history ORDER BY number")
        return [Link(*row) for row in rows]

    async def standing(self) -> Sequence[Standing]:
        rows = await self._rows("SELECT operation_id, state, history_number, record FROM operation")
        return standings(rows)

    async def head(self) -> Head:
        rows = await self._rows(_HEAD)
        return Head(*rows[0]) if rows else GENESIS

    async def close(self) -> None:
        await self._database.close()


def _job(job_id: str | None) -> bytes | None:
    """Return a job id as it is kept: whatever a provider wrote, which may be what no text column takes."""
    return None if job_id is None else job_id.encode()
