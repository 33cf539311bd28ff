"""How a worker reaches its SQLite file: opening it, its schema's coming up to date, a transaction, and what becomes of
what SQLite complains of. What is asked of the database is in ``sqlite``.
"""

import sqlite3
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final
from weakref import finalize

from reference_client.stores.alike import too_new
from reference_client.stores.protocol import StoreError, StoreRefused
from reference_client.stores.sqlite_schema import MIGRATIONS

__all__ = ["REFUSALS", "Database", "opened"]

_IN_MEMORY: Final = ":memory:"
_STATEMENTS: Final = 256
"""So many are kept prepared: more than there are."""


class Database:
    """A connection to one file, its schema up to date."""

    begin = "BEGIN IMMEDIATE"
    commit = "COMMIT"
    rollback: tuple[str, ...] = ("ROLLBACK",)

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    @contextmanager
    def immediate(self) -> Iterator[None]:
        """One transaction that has the write lock from its beginning: all of it is durable when this ends, or none."""
        db = self.connection
        db.execute(self.begin)
        try:
            yield
            db.execute(self.commit)
        except BaseException:
            if db.in_transaction:
                for statement in self.rollback:
                    db.execute(statement)
            raise

    def close(self) -> None:
        """Give up the connection."""
        self.connection.close()


class _Scratch(Database):
    """A database in memory, borrowed for as long as this object lives.

    All that is done to it is part of one transaction, which is undone when the object is gone: for its next user the
    database is blank, and every statement is prepared already. To make one anew for each run of a simulation would take
    a good part of the run.
    """

    begin = "SAVEPOINT step"
    commit = "RELEASE step"
    rollback = ("ROLLBACK TO step", "RELEASE step")

    def __init__(self) -> None:
        super().__init__(_IDLE.pop() if _IDLE else _blank())
        self.connection.execute("BEGIN")
        self._give_back = finalize(self, _give_back, self.connection)
        self._give_back.atexit = False

    def close(self) -> None:
        self._give_back.detach()
        super().close()


_IDLE: Final[deque[sqlite3.Connection]] = deque(maxlen=8)
"""Databases in memory that nobody uses; some for programs that run several simulations at once."""


def _blank() -> sqlite3.Connection:
    # Used by one thread at a time; which one drops the last reference to it, nobody knows.
    db = sqlite3.connect(_IN_MEMORY, isolation_level=None, cached_statements=_STATEMENTS, check_same_thread=False)
    _migrate(Database(db), _IN_MEMORY)
    return db


def _give_back(db: sqlite3.Connection) -> None:
    with suppress(sqlite3.Error):  # what cannot be undone is not used again
        db.execute("ROLLBACK")
        _IDLE.append(db)


def opened(path: str, busy_timeout_s: float) -> Database:
    """Return the database in the file at ``path``, or one in memory; its schema is up to date.

    Raises:
        SchemaTooNew: if a newer version of this program wrote the file.
        StoreRefused: if the file cannot be opened.
    """
    if path == _IN_MEMORY:
        return _Scratch()
    try:
        db = sqlite3.connect(path, timeout=busy_timeout_s, isolation_level=None, cached_statements=_STATEMENTS)
    except sqlite3.Error as error:
        raise StoreRefused(f"{path}: {error}") from None
    database = Database(db)
    with REFUSALS:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=FULL")
        _migrate(database, path)
    return database


class _Refusals:
    """Turns what SQLite says into what a store says."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, sqlite3.IntegrityError):
            raise StoreError(f"the store's own rules forbid this write: {error}") from error
        if isinstance(error, sqlite3.Error):
            raise StoreRefused(f"SQLite: {error}") from error


REFUSALS: Final = _Refusals()  # it keeps nothing, and one serves all: every read and write passes through


def _migrate(database: Database, path: str) -> None:
    db = database.connection
    # Looking costs no write lock: a worker can start while another holds it.
    if db.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),):
        return
    with database.immediate():
        (version,) = db.execute("PRAGMA user_version").fetchone()
        if version > len(MIGRATIONS):
            raise too_new(path, version, len(MIGRATIONS))
        for number, script in enumerate(MIGRATIONS[version:], start=version + 1):
            for statement in _statements(script):
                db.execute(statement)
            db.execute(f"PRAGMA user_version = {number}")


def _statements(script: str) -> Iterator[str]:
    """Split a script without committing the transaction it runs in, as ``executescript`` would."""
    pending = ""
    for line in script.splitlines():
        pending += line + "\n"
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""
