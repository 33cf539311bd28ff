"""What is in a result: the items that were asked for, each with its outcome, in the order that the work says."""

from __future__ import annotations

import asyncio
import hashlib
from typing import TYPE_CHECKING, Any, Literal

import pytest

from fake_provider.results import rows_of
from fake_provider.work import Work

if TYPE_CHECKING:
    from tests.fake_provider.conftest import Jobs, Play, World

Order = Literal["given", "reversed", "mixed"]


def _ids(order: Order, items: tuple[str, ...] | None = None, *, records: int = 5) -> list[str | None]:
    return [row.id for row in rows_of(Work(records=records, row_order=order), items)]


def test_rows_come_as_given_unless_the_work_says_otherwise() -> None:
    assert [row.id for row in rows_of(Work(records=3), None)] == ["r1", "r2", "r3"]
    assert _ids("given", ("b", "a")) == ["b", "a"]


@pytest.mark.parametrize("items", [None, ("e", "d", "c", "b", "a")])
def test_rows_in_another_order_are_the_same_rows(items: tuple[str, ...] | None) -> None:
    given = _ids("given", items)
    assert _ids("reversed", items) == given[::-1]
    mixed = _ids("mixed", items)
    assert sorted(map(str, mixed)) == sorted(map(str, given))
    assert mixed not in (given, given[::-1])
    assert mixed == _ids("mixed", items)


@pytest.mark.parametrize("order", ["given", "reversed", "mixed"])
def test_the_same_items_fail_whatever_the_order(order: Order) -> None:
    rows = rows_of(Work(records=5, failed_items=2, row_order=order), None)
    assert {row.id for row in rows if row.error is not None} == {"r4", "r5"}


def test_what_is_stated_of_a_result_is_true_of_it_in_any_order(play: Play) -> None:
    seen: dict[str, Any] = {}

    async def story(world: World, jobs: Jobs) -> None:
        job = await jobs.created()
        await asyncio.sleep(3)
        seen["told"] = (await jobs.status(job)).json()["result"]
        seen["result"] = (await jobs.result(job)).content

    play(story, work={"default": Work(row_order="reversed")})
    assert seen["told"]["sha256"] == hashlib.sha256(seen["result"]).hexdigest()
    assert seen["result"].index(b'"r3"') < seen["result"].index(b'"r1"')
