"""The result of a job: generated from its work, the same bytes each time it is asked for."""

import hashlib
from typing import Any

import msgspec

from fake_provider.work import Work

__all__ = ["ResultBody", "canonical_json", "make_result"]

_CANONICAL = msgspec.json.Encoder(order="sorted")


def canonical_json(value: Any) -> bytes:
    """Return JSON with sorted keys, no spaces, in UTF-8: equal bytes for equal values."""
    return _CANONICAL.encode(value)


class ResultBody(msgspec.Struct, frozen=True, kw_only=True):
    """A result as the provider would send it unharmed."""

    body: bytes
    sha256: str  # hex
    records: int
    failed: int


def make_result(operation: str | None, work: Work) -> ResultBody:
    """Return the report of ``operation``: ``work.records`` rows, the last ``work.failed_items`` of them failed."""
    good = work.records - work.failed_items
    rows: list[dict[str, str]] = [{"id": f"r{number}", "status": "ok"} for number in range(1, good + 1)]
    rows += [
        {"id": f"r{number}", "status": "failed", "error": "the source row could not be read"}
        for number in range(good + 1, work.records + 1)
    ]
    body = canonical_json({"client_reference": operation, "records": rows})
    return ResultBody(
        body=body, sha256=hashlib.sha256(body).hexdigest(), records=work.records, failed=work.failed_items
    )
