"""The result of a job: its rows, decided from the job's work. How they are written is the dialect's business."""

import hashlib
from collections.abc import Sequence
from typing import Any, Final, Protocol

import msgspec

from fake_provider.work import Work

__all__ = ["ResultBody", "Row", "Style", "Tally", "canonical_json", "make_result", "rows_of", "tally"]

_CANONICAL: Final = msgspec.json.Encoder(order="sorted")
_REASON: Final = "the source row could not be read"


def canonical_json(value: Any) -> bytes:
    """Return JSON with sorted keys, no spaces, in UTF-8: equal bytes for equal values."""
    return _CANONICAL.encode(value)


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one item. One without an ``id`` is no outcome but an error where an outcome should be."""

    id: str | None
    error: str | None = None  # None: it went well


class Style(Protocol):
    """How a provider names things and writes results down. A dialect is one."""

    job_prefix: str  # job ids begin with it
    upload_prefix: str  # ids of uploaded documents begin with it

    def result(self, operation: str | None, rows: Sequence[Row]) -> tuple[bytes, bytes | None]:
        """Write rows down, the same bytes for the same rows.

        Returns:
            the result, which is what checksum and size are of; and what is served beside it, if anything is.
        """
        ...


class ResultBody(msgspec.Struct, frozen=True, kw_only=True):
    """A result as the provider would send it unharmed."""

    body: bytes
    sha256: str  # hex
    rows: tuple[Row, ...]
    annex: bytes | None = None  # served beside the result, under an id of its own

    @property
    def records(self) -> int:
        return len(self.rows)

    @property
    def failed(self) -> int:
        return sum(row.error is not None for row in self.rows)


class Tally(msgspec.Struct, frozen=True):
    """How many items a job has, and what became of them so far."""

    total: int
    succeeded: int
    failed: int


def _counts(work: Work, items: Sequence[str] | None) -> tuple[int, int]:
    """Return how many items there are, and how many of them fail: all, if all of the work's own do."""
    if items is None:
        return work.records, work.failed_items
    total = len(items)
    return total, total if work.failed_items >= work.records > 0 else min(work.failed_items, total)


def rows_of(work: Work, items: Sequence[str] | None, progress: int = 100) -> tuple[Row, ...]:
    """Return the rows of a job of which so many per cent are done. Of the items as given, the last ones failed.

    Args:
        items: what the client calls them; None where the work alone says how many there are.
    """
    total, failed = _counts(work, items)
    names = items if items is not None else [f"r{number}" for number in range(1, total + 1)]
    rows = tuple(
        Row(id=name, error=_REASON if number > total - failed else None)
        for number, name in enumerate(names[: total * progress // 100], start=1)
    )
    if work.row_order == "reversed":
        return rows[::-1]
    return tuple(sorted(rows, key=_mixed)) if work.row_order == "mixed" else rows


def _mixed(row: Row) -> bytes:
    """Return what brings rows into an order that has nothing to do with their ids, and is always the same."""
    return hashlib.sha256((row.id or "").encode()).digest()


def tally(work: Work, items: Sequence[str] | None, progress: int) -> Tally:
    """Return the counts of a job at so many per cent."""
    total, failing = _counts(work, items)
    done = total * progress // 100
    good = min(done, total - failing)
    return Tally(total, good, done - good)


def make_result(
    operation: str | None, work: Work, style: Style, items: Sequence[str] | None = None, progress: int = 100
) -> ResultBody:
    """Return the result of a job of ``operation`` of which so many per cent are done."""
    rows = rows_of(work, items, progress)
    body, annex = style.result(operation, rows)
    return ResultBody(body=body, annex=annex, sha256=hashlib.sha256(body).hexdigest(), rows=rows)
