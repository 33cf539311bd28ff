"""What only the SQLite store promises: its triggers, its settings, its versions, its refusals."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import deque
from typing import TYPE_CHECKING, Any

import pytest

from reference_client.stores import sqlite_database
from reference_client.stores.protocol import LeaseLost, SchemaTooNew, StoreError, StoreRefused
from reference_client.stores.sqlite import SQLiteStore
from reference_client.stores.sqlite_schema import MIGRATIONS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.reference_client.conftest import ManualClock, Story


@pytest.fixture
def path(tmp_path: Path, story: Story, clock: ManualClock) -> Path:
    place = tmp_path / "operations.sqlite"

    async def fill() -> None:
        store = SQLiteStore(place, now=clock.now)
        await store.add(story.workflow.open("op-1", {}, target="http://x.test", authorised_by="a", actor="w", now=0.0))
        await store.close()

    asyncio.run(fill())
    return place


@pytest.fixture
def database(path: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(path, isolation_level=None)
    yield connection
    connection.close()


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE history SET entry = 'x'", "never edited"),
        ("UPDATE history SET number = 9", "never edited"),
        ("DELETE FROM history", "never deleted"),
        ("INSERT INTO history SELECT 3, operation_id, before, after, entry, hash FROM history", "comes after the last"),
        ("REPLACE INTO history SELECT * FROM history", "comes after the last"),
        ("UPDATE operation SET state = 'succeeded'", "only with a history entry"),
        ("UPDATE operation SET history_number = 0", "only go on"),
        ("UPDATE operation SET lease_fence = -1", "only go on"),
        ("UPDATE operation SET operation_id = 'op-2'", "keeps its id"),
        ("DELETE FROM operation", "never deleted"),
        ("REPLACE INTO operation SELECT * FROM operation", "starts with a history entry"),
        (
            "INSERT INTO operation VALUES ('op-2', 'create_pending', 0, NULL, 0, NULL, 0, NULL, 1, 'x')",
            "starts with a history entry",
        ),
    ],
)
def test_the_database_itself_refuses(database: sqlite3.Connection, statement: str, message: str) -> None:
    with pytest.raises(sqlite3.IntegrityError, match=message):
        database.execute(statement)


def test_a_state_does_not_change_on_an_entry_about_another_operation(database: sqlite3.Connection) -> None:
    database.execute("INSERT INTO history VALUES (2, 'op-2', 'create_pending', 'failed', 'x', 'x')")
    with pytest.raises(sqlite3.IntegrityError, match="only with a history entry"):
        database.execute("UPDATE operation SET state = 'failed', history_number = 2 WHERE operation_id = 'op-1'")


def test_writes_are_durable_when_they_return(path: Path) -> None:
    store = SQLiteStore(path)
    assert store._db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert store._db.execute("PRAGMA synchronous").fetchone() == (2,), "FULL"
    asyncio.run(store.close())


def test_the_schema_version_is_recorded(database: sqlite3.Connection) -> None:
    assert database.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)


def test_a_newer_store_is_refused(path: Path, database: sqlite3.Connection) -> None:
    database.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    with pytest.raises(SchemaTooNew, match=f"version {len(MIGRATIONS) + 1}; this program knows"):
        SQLiteStore(path)


def test_an_older_store_is_brought_up_and_keeps_what_it_holds(
    path: Path, database: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_database, "MIGRATIONS", (*MIGRATIONS, "ALTER TABLE operation ADD COLUMN colour TEXT;\n"))

    async def tell() -> None:
        store = SQLiteStore(path)
        assert [each.operation_id for each in await store.operations()] == ["op-1"]
        await store.close()

    asyncio.run(tell())
    assert database.execute("SELECT colour FROM operation").fetchall() == [(None,)]
    assert database.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS) + 1,)


def test_a_migration_that_fails_leaves_the_store_as_it_was(
    path: Path, database: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = "ALTER TABLE operation ADD COLUMN colour TEXT;\nALTER TABLE nowhere ADD COLUMN colour TEXT;\n"
    monkeypatch.setattr(sqlite_database, "MIGRATIONS", (*MIGRATIONS, broken))
    with pytest.raises(StoreRefused, match="nowhere"):
        SQLiteStore(path)
    with pytest.raises(sqlite3.OperationalError, match="colour"):
        database.execute("SELECT colour FROM operation")
    assert database.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)


def test_a_worker_can_start_while_another_one_writes(path: Path, database: sqlite3.Connection) -> None:
    database.execute("BEGIN IMMEDIATE")
    store = SQLiteStore(path, busy_timeout_s=0)
    assert len(asyncio.run(store.operations())) == 1
    database.execute("ROLLBACK")
    asyncio.run(store.close())


def test_a_renewal_counts_from_when_the_lock_was_had(path: Path, clock: ManualClock) -> None:
    """A write lock may be long in coming: a lease that was short enough to renew may have run out meanwhile."""

    class Slow(SQLiteStore):
        def _transaction(self) -> Any:
            clock.time += 3
            return super()._transaction()

    async def tell() -> None:
        slow, other = Slow(path, now=clock.now), SQLiteStore(path, now=clock.now)
        claimed = await other.claim("w1", 2)
        assert claimed is not None
        with pytest.raises(LeaseLost):
            await slow.renew(claimed.lease, 5)
        claimed = await other.claim("w1", 4)
        assert claimed is not None
        assert (await slow.renew(claimed.lease, 5)).until == clock.now() + 5
        await slow.close()
        await other.close()

    asyncio.run(tell())


def test_a_place_that_cannot_be_opened_is_refused_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(StoreRefused, match="nowhere"):
        SQLiteStore(tmp_path / "nowhere" / "operations.sqlite")


def test_a_locked_database_refuses_and_works_again_afterwards(
    path: Path, database: sqlite3.Connection, story: Story, clock: ManualClock
) -> None:
    async def tell() -> None:
        store = SQLiteStore(path, now=clock.now, busy_timeout_s=0)
        step = story.workflow.open("op-2", {}, target="http://x.test", authorised_by="a", actor="w", now=0.0)
        database.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreRefused, match="locked"):
            await store.add(step)
        database.execute("ROLLBACK")
        await store.add(step)
        assert len(await store.operations()) == 2
        await store.close()

    asyncio.run(tell())


def test_a_full_disk_refuses_and_leaves_nothing_half_written(path: Path, story: Story, clock: ManualClock) -> None:
    async def tell() -> None:
        store = SQLiteStore(path, now=clock.now)
        (pages,) = store._db.execute("PRAGMA page_count").fetchone()
        store._db.execute(f"PRAGMA max_page_count = {pages}")
        large = {"kind": "x" * 100_000}
        step = story.workflow.open("op-2", large, target="http://x.test", authorised_by="a", actor="w", now=0.0)
        with pytest.raises(StoreRefused, match="full"):
            await store.add(step)
        assert len(await store.operations()) == 1
        assert (await store.head()).number == 1
        store._db.execute("PRAGMA max_page_count = 1000000")
        await store.add(step)
        await store.close()

    asyncio.run(tell())


def test_a_step_against_the_stores_own_rules_is_an_error_and_no_refusal(
    path: Path, story: Story, clock: ManualClock
) -> None:
    async def tell() -> None:
        store = SQLiteStore(path, now=clock.now)
        step = story.workflow.open("op-2", {}, target="http://x.test", authorised_by="a", actor="w", now=0.0)
        with pytest.raises(StoreError, match="starts with a history entry") as caught:
            await store.add(type(step)(step.operation, ()))
        assert not isinstance(caught.value, StoreRefused)
        await store.close()

    asyncio.run(tell())


def test_a_database_in_memory_is_blank_for_its_next_user(
    story: Story, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = SQLiteStore(":memory:", now=clock.now)
    step = story.workflow.open("op-1", {}, target="http://x.test", authorised_by="a", actor="w", now=0.0)
    asyncio.run(first.add(step))
    connection = first._db
    del first
    assert connection in sqlite_database._IDLE
    monkeypatch.setattr(sqlite_database, "_IDLE", deque([connection]))
    second, third = SQLiteStore(":memory:", now=clock.now), SQLiteStore(":memory:", now=clock.now)
    assert second._db is connection is not third._db
    assert asyncio.run(second.operations()) == []
    assert asyncio.run(second.links()) == []
