"""How a worker reaches its SQLite file: opening it, its schema's coming up to date, a transaction, and what becomes of
what SQLite complains of. What is asked of the database is in ``sqlite``.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Final

from reference_client.stores.alike import too_new
from reference_client.stores.protocol import StoreError, StoreRefused
from reference_client.stores.sqlite_schema import MIGRATIONS

__all__ = ["REFUSALS", "connected", "immediate"]

_IN_MEMORY: Final = ":memory:"


def connected(path: str, busy_timeout_s: float) -> sqlite3.Connection:
    """Return a connection to the file at ``path``, or to a database in memory; its schema is up to date.

    Raises:
        SchemaTooNew: if a newer version of this program wrote the file.
        StoreRefused: if the file cannot be opened.
    """
    try:
        db = sqlite3.connect(path, timeout=busy_timeout_s, isolation_level=None, cached_statements=256)
    except sqlite3.Error as error:
        raise StoreRefused(f"{path}: {error}") from None
    with REFUSALS:
        if path == _IN_MEMORY:
            db.deserialize(_blank())
        else:
            db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=FULL")
        _migrate(db, path)
    return db


@contextmanager
def immediate(db: sqlite3.Connection) -> Iterator[None]:
    """One transaction that has the write lock from its beginning: all of it is durable when this ends, or none."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


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


@cache
def _blank() -> bytes:
    """A database with its schema and nothing in it: one in memory would take longer to be made than to live."""
    db = sqlite3.connect(_IN_MEMORY, isolation_level=None)
    _migrate(db, _IN_MEMORY)
    return db.serialize()


def _migrate(db: sqlite3.Connection, path: str) -> None:
    # Looking costs no write lock: a worker can start while another holds it.
    if db.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),):
        return
    with immediate(db):
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
