"""What only the PostgreSQL store promises: its triggers, its versions, its clock, its connection, its refusals."""

from __future__ import annotations

import asyncio
import os
import time
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from reference_client.config import ConfigError
from reference_client.stores import postgres_database
from reference_client.stores.postgres import PostgresStore
from reference_client.stores.postgres_schema import MIGRATIONS
from reference_client.stores.protocol import LeaseLost, SchemaTooNew, StoreError, StoreRefused
from reference_client.workflow import Settle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from reference_client.steps import Step
    from tests.reference_client.conftest import Story


@pytest.fixture
def opened(story: Story) -> Callable[..., Step]:
    def open_one(name: str = "op-1") -> Step:
        return story.workflow.open(name, {}, target="http://x.test", authorised_by="a", actor="w", now=0.0)

    return open_one


@pytest.fixture
def database(postgres_url: str, opened: Callable[..., Step]) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    """The database itself, with one operation in it."""

    async def fill() -> None:
        store = PostgresStore(postgres_url)
        await store.add(opened())
        await store.close()

    asyncio.run(fill())
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        yield connection


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE history SET entry = 'x'", "never edited"),
        ("UPDATE history SET number = 9", "never edited"),
        ("DELETE FROM history", "never deleted"),
        ("TRUNCATE history", "never deleted"),
        ("INSERT INTO history SELECT 3, operation_id, before, after, entry, hash FROM history", "comes after the last"),
        ("INSERT INTO history SELECT 1, operation_id, before, after, entry, hash FROM history", "comes after the last"),
        ("UPDATE operation SET state = 'succeeded'", "only with a history entry"),
        ("UPDATE operation SET history_number = 0", "only go on"),
        ("UPDATE operation SET lease_fence = -1", "only go on"),
        ("UPDATE operation SET operation_id = 'op-2'", "keeps its id"),
        ("DELETE FROM operation", "never deleted"),
        ("TRUNCATE operation", "never deleted"),
        (
            "INSERT INTO operation SELECT 'op-2', state, 0, NULL, 0, NULL, 0, NULL, 1, record FROM operation",
            "starts with a history entry",
        ),
    ],
)
def test_the_database_itself_refuses(
    database: psycopg.Connection[tuple[Any, ...]], statement: str, message: str
) -> None:
    with pytest.raises(psycopg.IntegrityError, match=message):
        database.execute(statement)


def test_a_state_does_not_change_on_an_entry_about_another_operation(
    database: psycopg.Connection[tuple[Any, ...]],
) -> None:
    database.execute("INSERT INTO history VALUES (2, 'op-2', 'create_pending', 'failed', 'x', 'x')")
    with pytest.raises(psycopg.IntegrityError, match="only with a history entry"):
        database.execute("UPDATE operation SET state = 'failed', history_number = 2")


def test_the_triggers_hold_whatever_the_search_path_is(
    database: psycopg.Connection[tuple[Any, ...]],
) -> None:
    row = database.execute("SELECT current_schema()").fetchone()
    assert row is not None
    database.execute("SET search_path TO pg_catalog")
    with pytest.raises(psycopg.IntegrityError, match="only with a history entry"):
        database.execute(f"UPDATE {row[0]}.operation SET state = 'succeeded'")  # noqa: S608  a name of ours


# versions


def test_the_schema_version_is_recorded(database: psycopg.Connection[tuple[Any, ...]]) -> None:
    assert database.execute("SELECT max(version) FROM schema_version").fetchone() == (len(MIGRATIONS),)


def test_a_newer_store_is_refused(database: psycopg.Connection[tuple[Any, ...]], postgres_url: str) -> None:
    database.execute("INSERT INTO schema_version VALUES (%s, now())", (len(MIGRATIONS) + 1,))
    with pytest.raises(SchemaTooNew, match=f"version {len(MIGRATIONS) + 1}; this program knows"):
        asyncio.run(PostgresStore(postgres_url).operations())


def test_an_older_store_is_brought_up_and_keeps_what_it_holds(
    database: psycopg.Connection[tuple[Any, ...]], postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_database, "MIGRATIONS", (*MIGRATIONS, "ALTER TABLE operation ADD COLUMN colour text"))

    async def tell() -> None:
        store = PostgresStore(postgres_url)
        assert [each.operation_id for each in await store.operations()] == ["op-1"]
        await store.close()

    asyncio.run(tell())
    assert database.execute("SELECT colour FROM operation").fetchall() == [(None,)]
    assert database.execute("SELECT max(version) FROM schema_version").fetchone() == (len(MIGRATIONS) + 1,)


def test_a_migration_that_fails_leaves_the_store_as_it_was(
    database: psycopg.Connection[tuple[Any, ...]], postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = "ALTER TABLE operation ADD COLUMN colour text; ALTER TABLE nowhere ADD COLUMN colour text"
    monkeypatch.setattr(postgres_database, "MIGRATIONS", (*MIGRATIONS, broken))
    with pytest.raises(StoreError, match="nowhere"):
        asyncio.run(PostgresStore(postgres_url).operations())
    with pytest.raises(psycopg.errors.UndefinedColumn):
        database.execute("SELECT colour FROM operation")
    assert database.execute("SELECT max(version) FROM schema_version").fetchone() == (len(MIGRATIONS),)


def test_workers_that_start_at_the_same_time_make_one_schema(postgres_url: str) -> None:
    async def tell() -> None:
        stores = [PostgresStore(postgres_url) for _ in range(4)]
        assert await asyncio.gather(*(store.operations() for store in stores)) == [[]] * 4
        for store in stores:
            await store.close()

    asyncio.run(tell())


# the clock


def test_leases_go_by_the_servers_clock_and_not_by_the_workers(
    postgres_url: str, opened: Callable[..., Step], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def tell() -> None:
        store = PostgresStore(postgres_url)
        await store.add(opened())
        monkeypatch.setattr(time, "time", lambda: 0.0)  # a worker whose clock is decades slow
        claimed = await store.claim("w1", 60)
        monkeypatch.undo()
        assert claimed is not None
        assert claimed.lease.until == pytest.approx(time.time() + 60, abs=5)
        assert await store.now() == pytest.approx(time.time(), abs=5)
        await store.close()

    asyncio.run(tell())


def test_the_clock_runs_on_within_a_transaction(database: psycopg.Connection[tuple[Any, ...]]) -> None:
    """``now()`` would be the time at which a transaction began, and a lease that ends amid it would seem to live."""
    with database.transaction():
        first = database.execute("SELECT store_now()").fetchone()
        second = database.execute("SELECT store_now()").fetchone()
    assert first is not None
    assert second is not None
    assert second > first


def test_the_clock_can_be_read_without_a_connection(postgres_url: str) -> None:
    async def tell() -> None:
        store = PostgresStore(postgres_url)
        first = await store.now()
        await store.close()
        assert store._database._connection is None
        assert first <= await store.now() < first + 60
        assert store._database._connection is None

    asyncio.run(tell())


# the connection


def end_sessions(database: psycopg.Connection[tuple[Any, ...]]) -> None:
    database.execute(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
        " WHERE pid <> pg_backend_pid() AND application_name = 'jobsworth'"
    )


def test_a_lost_connection_refuses_once_and_is_made_anew(
    database: psycopg.Connection[tuple[Any, ...]], postgres_url: str, opened: Callable[..., Step]
) -> None:
    async def tell() -> None:
        store = PostgresStore(postgres_url)
        assert len(await store.operations()) == 1
        end_sessions(database)
        with pytest.raises(StoreRefused, match="PostgreSQL"):
            await store.add(opened("op-2"))
        await store.add(opened("op-2"))
        assert len(await store.operations()) == 2
        await store.close()

    asyncio.run(tell())


def test_a_connection_lost_amid_a_write_leaves_nothing_half_written(
    database: psycopg.Connection[tuple[Any, ...]], postgres_url: str, opened: Callable[..., Step]
) -> None:
    class Unlucky(PostgresStore):
        @staticmethod
        async def _append(connection: Any, entries: Any) -> int:
            number = await PostgresStore._append(connection, entries)
            end_sessions(database)
            return number

    async def tell() -> None:
        unlucky = Unlucky(postgres_url)
        with pytest.raises(StoreRefused):
            await unlucky.add(opened("op-2"))
        await unlucky.close()
        store = PostgresStore(postgres_url)
        assert (await store.head()).number == 1
        await store.close()

    asyncio.run(tell())


def test_who_is_frozen_amid_a_write_does_not_stop_the_others(postgres_url: str, opened: Callable[..., Step]) -> None:
    """The server ends the session of a worker that holds the trail and says nothing more."""

    async def tell() -> None:
        frozen, other = PostgresStore(postgres_url), PostgresStore(postgres_url)

        async def freeze() -> None:
            async with frozen._database.transaction() as connection:
                shown = await (await connection.execute("SHOW idle_in_transaction_session_timeout")).fetchone()
                assert shown == ("2s",)
                await connection.execute("SET LOCAL idle_in_transaction_session_timeout = '10ms'")
                await other.add(opened())  # waits for the trail, and gets it
                await connection.execute("SELECT 1")

        with pytest.raises(StoreRefused):
            await freeze()
        assert len(await frozen.operations()) == 1
        await frozen.close()
        await other.close()

    asyncio.run(tell())


def test_a_stale_worker_writes_nothing_even_in_the_moment_between(
    database: psycopg.Connection[tuple[Any, ...]], postgres_url: str, story: Story
) -> None:
    """The lease is looked at by the very statement that writes, under the row's lock."""

    async def tell() -> None:
        store = PostgresStore(postgres_url)
        claimed = await store.claim("w1", 60)
        assert claimed is not None
        database.execute("UPDATE operation SET lease_until = store_now() - 0.001")
        action = story.workflow.next_action(claimed.operation, 1e12)
        assert isinstance(action, Settle)
        step = story.workflow.settle(claimed.operation, action, actor="w1", now=1e12)
        for write in (store.commit(claimed.lease, step), store.release(claimed.lease, step, due_at=None)):
            with pytest.raises(LeaseLost):
                await write
        assert (await store.head()).number == 1
        await store.close()

    asyncio.run(tell())


def test_two_claims_at_the_same_time_take_two_operations(postgres_url: str, opened: Callable[..., Step]) -> None:
    async def tell() -> None:
        stores = [PostgresStore(postgres_url) for _ in range(3)]
        for name in ("op-1", "op-2"):
            await stores[0].add(opened(name))
        claims = await asyncio.gather(*(store.claim(f"w{n}", 60) for n, store in enumerate(stores)))
        assert sorted(each.operation.operation_id for each in claims if each is not None) == ["op-1", "op-2"]
        for store in stores:
            await store.close()

    asyncio.run(tell())


# refusals


def test_a_server_that_is_not_there_refuses(tmp_path: Any) -> None:
    store = PostgresStore(f"postgresql://postgres@/postgres?host={tmp_path}")
    with pytest.raises(StoreRefused, match="PostgreSQL: "):
        asyncio.run(store.now())


def test_a_full_disk_refuses(postgres_url: str, opened: Callable[..., Step]) -> None:
    class FullStore(PostgresStore):
        @staticmethod
        async def _append(connection: Any, entries: Any) -> int:
            raise psycopg.errors.DiskFull("no space left on device")

    async def tell() -> None:
        store = FullStore(postgres_url)
        with pytest.raises(StoreRefused, match="no space left"):
            await store.add(opened())
        assert await store.operations() == []
        await store.close()

    asyncio.run(tell())


def test_a_step_against_the_stores_own_rules_is_an_error_and_no_refusal(
    database: psycopg.Connection[tuple[Any, ...]], postgres_url: str, opened: Callable[..., Step]
) -> None:
    async def tell() -> None:
        store = PostgresStore(postgres_url)
        step = opened("op-2")
        with pytest.raises(StoreError, match="starts with a history entry") as caught:
            await store.add(type(step)(step.operation, ()))
        assert not isinstance(caught.value, StoreRefused)
        await store.close()

    asyncio.run(tell())


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("postgresql://ann:secret@db/jobs", "leave it out"),
        ("postgresql://db/jobs?password=secret", "leave it out"),
        ("postgresql://db/jobs?colour=secret", "no address"),
    ],
)
def test_an_address_that_will_not_do_is_refused_and_not_repeated(address: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        PostgresStore(address)
    assert "secret" not in str(caught.value)
    assert os.linesep not in str(caught.value)
