"""An address says which store is meant; one that means none is refused with what would do."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

import pytest

from reference_client.config import ConfigError
from reference_client.stores.opening import open_store
from reference_client.stores.postgres import PostgresStore
from reference_client.stores.sqlite import SQLiteStore

if TYPE_CHECKING:
    from pathlib import Path


def test_a_path_and_an_sqlite_address_are_the_same_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for place in ("plain.sqlite", "sqlite:///relative.sqlite", f"sqlite:///{tmp_path}/absolute%20one.sqlite"):
        store = open_store(place)
        assert isinstance(store, SQLiteStore)
        asyncio.run(store.close())
    found = sorted(path.name for path in tmp_path.glob("*.sqlite"))
    assert found == ["absolute one.sqlite", "plain.sqlite", "relative.sqlite"]


@pytest.mark.parametrize("place", ["postgresql://db/jobs", "postgres://ann@db:5433/jobs?sslmode=verify-full"])
def test_a_postgresql_address_is_not_connected_to_before_it_is_used(place: str) -> None:
    store = open_store(place)
    assert isinstance(store, PostgresStore)
    asyncio.run(store.close())


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("", "is empty"),
        ("sqlite://operations.sqlite", "write sqlite:///relative/path"),
        ("sqlite:///", "write sqlite:///relative/path"),
        ("postgresq://db/jobs", "did you mean postgresql://"),
        ("mysql://db/jobs", "only for a path, sqlite:/// and postgresql://"),
    ],
)
def test_what_is_no_store_is_refused_with_what_would_do(place: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        open_store(place)


def test_without_the_driver_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("postgres", "postgres_database"):
        monkeypatch.delitem(sys.modules, f"reference_client.stores.{name}")
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ConfigError, match=r"jobsworth\[postgres\]"):
        open_store("postgresql://db/jobs")
