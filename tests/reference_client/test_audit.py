"""Whoever tampers with a real trail is found, and the first bad entry is named (W8.2)."""

from __future__ import annotations

import asyncio
import sqlite3
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_client import audit
from reference_client.lifecycle import LocalState
from reference_client.stores.sqlite import SQLiteStore

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.reference_client.conftest import ManualClock, Story

ENTRIES = 6
TRIGGERS = ("history_goes_on", "history_is_not_edited", "history_is_not_deleted", "operation_moves_with_history")


@pytest.fixture
def path(tmp_path: Path, story: Story, clock: ManualClock) -> Path:
    """A store with a trail of six entries about six operations."""
    place = tmp_path / "operations.sqlite"

    async def fill() -> None:
        store = SQLiteStore(place, now=clock.now)
        for number in range(1, ENTRIES + 1):
            name = f"op-{number}"
            step = story.workflow.open(name, {}, target="http://x.test", authorised_by="a", actor="w", now=0.0)
            await store.add(step)
        await store.close()

    asyncio.run(fill())
    return place


@pytest.fixture
def tamper(path: Path) -> Callable[..., None]:
    """Do what the triggers forbid, as somebody with the file and an editor can."""

    def do(*statements: str) -> None:
        connection = sqlite3.connect(path, isolation_level=None)
        for trigger in TRIGGERS:
            connection.execute(f"DROP TRIGGER IF EXISTS {trigger}")
        for statement in statements:
            connection.execute(statement)
        connection.close()

    return do


def verified(path: Path, *anchors: audit.Head) -> audit.Verdict:
    async def ask() -> audit.Verdict:
        store = SQLiteStore(path)
        try:
            return audit.verify(await store.links(), standing=await store.standing(), anchors=anchors)
        finally:
            await store.close()

    return asyncio.run(ask())


def test_a_trail_that_nobody_touched_is_sound(path: Path) -> None:
    verdict = verified(path)
    assert (verdict.problem, verdict.entries, verdict.head.number) == (None, ENTRIES, ENTRIES)
    assert verified(path, verdict.head).problem is None


def test_an_empty_trail_is_sound() -> None:
    assert audit.verify([]) == audit.Verdict(entries=0, head=audit.GENESIS)


@pytest.mark.parametrize(
    ("statements", "entry", "word"),
    [
        (
            ["UPDATE history SET entry = replace(entry, 'on the authority', 'on the orders') WHERE number = 3"],
            3,
            "not what",
        ),
        (["UPDATE history SET hash = printf('%064d', 0) WHERE number = 3"], 3, "not what"),
        (["UPDATE history SET operation_id = 'op-9' WHERE number = 3"], 3, "columns"),
        (["UPDATE history SET after = 'failed' WHERE number = 3"], 3, "columns"),
        (["DELETE FROM history WHERE number = 3"], 3, "missing"),
        (["DELETE FROM history WHERE number = 1"], 1, "missing"),
        (
            [
                "UPDATE history SET number = 99 WHERE number = 2",
                "UPDATE history SET number = 2 WHERE number = 3",
                "UPDATE history SET number = 3 WHERE number = 99",
            ],
            2,
            "not what",
        ),
        (
            [
                "UPDATE history SET number = -number WHERE number > 3",
                "UPDATE history SET number = 1 - number WHERE number < 0",
                "INSERT INTO history SELECT 4, operation_id, before, after, entry, hash FROM history WHERE number = 3",
            ],
            4,
            "not what",
        ),
        (["DELETE FROM history WHERE number > 4"], 5, "truncated"),
        (["UPDATE operation SET state = 'succeeded' WHERE operation_id = 'op-4'"], 4, "on record"),
        (
            ["UPDATE operation SET record = replace(record, '_pending', '_unknown') WHERE operation_id = 'op-4'"],
            4,
            "on record",
        ),
    ],
    ids=[
        "edit",
        "rehash",
        "reassign",
        "relabel",
        "delete",
        "behead",
        "reorder",
        "insert",
        "truncate",
        "state",
        "record",
    ],
)
def test_tampering_is_found_and_the_first_bad_entry_named(
    path: Path, tamper: Callable[..., None], statements: list[str], entry: int, word: str
) -> None:
    tamper(*statements)
    verdict = verified(path)
    assert verdict.problem is not None
    assert word in verdict.problem
    assert verdict.entry == entry


def test_a_trail_cut_off_with_all_that_knew_of_it_is_found_by_a_head_kept_outside(
    path: Path, tamper: Callable[..., None]
) -> None:
    kept = verified(path).head
    tamper(
        "DELETE FROM history WHERE number > 4",
        "DROP TRIGGER operation_is_not_deleted",
        "DELETE FROM operation WHERE history_number > 4",
    )
    assert verified(path).problem is None, "sound in itself"
    found = verified(path, kept)
    assert "truncated" in str(found.problem)
    assert found.entry == 5


def test_a_trail_rewritten_whole_is_found_by_a_head_kept_outside(path: Path, tamper: Callable[..., None]) -> None:
    kept = verified(path).head
    forged: list[str] = []
    previous = audit.GENESIS.hash
    connection = sqlite3.connect(path)
    for number, entry in connection.execute("SELECT number, entry FROM history ORDER BY number").fetchall():
        text = entry.replace(b"the authority of a", b"the authority of b")
        previous = audit.link_hash(previous, number, text)
        forged.append(
            f"UPDATE history SET entry = CAST(x'{text.hex()}' AS BLOB), hash = '{previous}' WHERE number = {number}"  # noqa: S608  our own text, in hexadecimal
        )
    connection.close()
    tamper(*forged)
    assert verified(path).problem is None, "sound in itself"
    assert "rewritten" in str(verified(path, kept).problem)


@given(st.integers(0, 10**9), st.binary(min_size=32, max_size=32))
def test_a_head_can_be_written_down_and_read_again(number: int, digest: bytes) -> None:
    head = audit.Head(number, digest.hex())
    assert audit.Head.parse(f" {head}\n") == head


@pytest.mark.parametrize("text", ["", "7", "7:", "x:" + "0" * 64, "7:" + "0" * 63, "7:" + "g" * 64, "-1:" + "0" * 64])
def test_what_is_no_head_is_refused(text: str) -> None:
    with pytest.raises(audit.AuditError, match="is no head"):
        audit.Head.parse(text)


def test_an_entry_that_does_not_start_where_the_one_before_ended_is_found(story: Story) -> None:
    entries = [
        story.entries[0],
        msgspec.structs.replace(story.entries[0], before=LocalState.ACCEPTED, after=LocalState.OBSERVING),
    ]
    links = []
    previous = audit.GENESIS.hash
    for number, entry in enumerate(entries, start=1):
        encoded = audit.encode_entry(entry)
        previous = audit.link_hash(previous, number, encoded)
        links.append(audit.Link(number, entry.operation_id, entry.before, entry.after, encoded, previous))
    verdict = audit.verify(links)
    assert verdict.entry == 2
    assert "starts from accepted" in str(verdict.problem)
