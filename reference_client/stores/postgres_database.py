"""How a worker reaches its PostgreSQL database: one connection, made at its first use and again when it was lost.

Whoever wants it takes turns. Here are the settings of its session, the schema's coming up to date, the one lock of the
trail, and what becomes of what PostgreSQL complains of. What is asked of the database is in ``postgres``.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final

import psycopg
from psycopg.conninfo import conninfo_to_dict

from reference_client.config import ConfigError
from reference_client.stores.alike import too_new
from reference_client.stores.postgres_schema import MIGRATIONS
from reference_client.stores.protocol import StoreError, StoreRefused

__all__ = ["Connection", "Database"]

Connection = psycopg.AsyncConnection[tuple[Any, ...]]
"""Its rows are tuples. It commits each statement by itself, unless it is in a transaction."""

_CONNECT_S: Final = 5
"""A server that is there accepts within milliseconds; a worker waits no longer than this to find that it is not."""

_SESSION: Final = {
    # A worker that is frozen amid a write holds the trail's lock. The server ends its session, and the others go on.
    "idle_in_transaction_session_timeout": "2s",
    # Nothing here takes long by itself. Whatever waits longer than this is refused, and tried again by the worker.
    "lock_timeout": "5s",
    "statement_timeout": "10s",
    # A step is durable when the commit returns, whatever the server's default is.
    "synchronous_commit": "on",
}

_KEEPALIVE: Final[dict[str, Any]] = {
    # A connection to a machine that is gone is noticed by the kernel, not by a call that never returns.
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}

_TRAIL_LOCK: Final = 0x6A6F6273  # "jobs", in ASCII
"""First half of the key of the advisory lock; the other half is the schema's, since two schemas are two stores."""

_FINAL_ERRORS: Final = (psycopg.IntegrityError, psycopg.DataError, psycopg.ProgrammingError, psycopg.NotSupportedError)
"""What a second try cannot better: the write breaks the store's rules, or is no write that a database can make."""

_LOCK: Final = "SELECT pg_advisory_xact_lock(%(lock)s, hashtext(current_schema()))"


class Database:
    """One PostgreSQL schema: the first of the connection's search path.

    Args:
        address: ``postgresql://…`` or any other connection string of libpq, without a password.

    Raises:
        ConfigError: if ``address`` is none, or holds a password.
    """

    def __init__(self, address: str) -> None:
        try:
            parts = conninfo_to_dict(address)
        except psycopg.ProgrammingError as error:
            # The message of libpq may quote the whole address.
            raise ConfigError(f"store: that is no address of a PostgreSQL database ({type(error).__name__})") from None
        if parts.get("password"):
            raise ConfigError(
                "store: the address holds a password; leave it out, and let PGPASSFILE, PGSERVICEFILE or PGPASSWORD "
                "have it"
            )
        self._address = address
        self._turn = asyncio.Lock()
        self._connection: Connection | None = None

    async def _connected(self) -> Connection:
        """Return a connection that is thought to work. Only for the holder of ``_turn``."""
        connection = self._connection
        if connection is not None and not connection.closed:
            return connection
        self._connection = None
        made: Connection = await psycopg.AsyncConnection.connect(
            self._address, autocommit=True, connect_timeout=_CONNECT_S, application_name="jobsworth", **_KEEPALIVE
        )
        try:
            for name, value in _SESSION.items():
                await made.execute("SELECT set_config(%s, %s, false)", (name, value))
            await self._migrate(made)
        except BaseException:
            await made.close()
            raise
        self._connection = made
        return made

    async def _migrate(self, connection: Connection) -> None:
        async with connection.transaction():
            await connection.execute(_LOCK, {"lock": _TRAIL_LOCK})  # two workers may start at the same time
            version = 0
            row = await (await connection.execute("SELECT to_regclass('schema_version')")).fetchone()
            if row is not None and row[0] is not None:
                row = await (await connection.execute("SELECT max(version) FROM schema_version")).fetchone()
                version = row[0] if row is not None else 0
            if version > len(MIGRATIONS):
                raise too_new("the database", version, len(MIGRATIONS))
            for number, script in enumerate(MIGRATIONS[version:], start=version + 1):
                await connection.execute(script)
                await connection.execute("INSERT INTO schema_version VALUES (%s, clock_timestamp())", (number,))

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Connection]:
        """Have the connection to oneself; each statement is a transaction of its own.

        Raises:
            StoreRefused: nothing is known to have been written, or there is no connection to be had.
            StoreError: the database itself forbids what was asked.
            SchemaTooNew: a newer version of this program wrote the schema.
        """
        async with self._turn:
            with _refusals():
                yield await self._connected()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """One transaction, alone at the trail: all of it is durable when this ends, or none. It raises as a session."""
        async with self.session() as connection, connection.transaction():
            # By itself: what comes after it sees all that was committed before the lock was had.
            await connection.execute(_LOCK, {"lock": _TRAIL_LOCK})
            yield connection

    async def close(self) -> None:
        """Give the connection back; it is made anew if it is used again."""
        if self._connection is not None:
            await self._connection.close()
            self._connection = None


@contextmanager
def _refusals() -> Iterator[None]:
    """Turn what PostgreSQL says into what a store says."""
    try:
        yield
    except _FINAL_ERRORS as error:
        raise StoreError(f"the store's own rules forbid this: {_one_line(error)}") from error
    except (psycopg.Error, OSError) as error:
        raise StoreRefused(f"PostgreSQL: {_one_line(error)}") from error


def _one_line(error: Exception) -> str:
    message = error.diag.message_primary if isinstance(error, psycopg.Error) else None
    return message or " ".join(str(error).split()) or type(error).__name__
