"""When to try again: ``Retry-After`` and capped exponential back-off with jitter (W4.2). Pure.

The deadlines that end the trying are the workflow's.
"""

from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from random import Random

__all__ = ["RetryAfter", "backoff_s", "read_retry_after"]

_LONGEST_S: Final = 10 * 365 * 86_400.0
"""No wait is longer than ten years: digits without end must not overflow the record's float."""

_DOUBLINGS: Final = 32
"""Past this many doublings every cap in use is reached; the power stays finite."""


class RetryAfter(msgspec.Struct, frozen=True):
    """What an answer says about when to come back.

    ``delay_s``: seconds from its receipt, or None when it says nothing usable. ``note``: why a value was not used.
    """

    delay_s: float | None = None
    note: str | None = None


_NOTHING: Final = RetryAfter()


def read_retry_after(headers: Mapping[str, str], received_at: float) -> RetryAfter:
    """Read ``Retry-After`` in either form (RFC 9110 §10.2.3). ``headers`` has lower-case names.

    A date is compared with the answer's own ``Date`` where there is one, so that a difference between the two clocks
    does not shorten the wait. A date in the past is a delay of 0. Negative numbers, fractions and junk are not used.
    """
    value = headers.get("retry-after")
    if value is None:
        return _NOTHING
    text = value.strip()
    if text.isascii() and text.isdigit():
        return RetryAfter(min(float(text), _LONGEST_S))
    moment = _http_date(text)
    if moment is None:
        return RetryAfter(None, f"Retry-After {text[:40]!r} is neither whole seconds nor an HTTP-date")
    reference = _http_date(headers.get("date", ""))
    return RetryAfter(min(max(0.0, moment - (received_at if reference is None else reference)), _LONGEST_S))


def _http_date(text: str) -> float | None:
    if not text.endswith("GMT"):
        return None  # RFC 9110 §5.6.7: an HTTP-date is in GMT and says so
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError, IndexError, TypeError):
        return None


def backoff_s(misses: int, *, first_s: float, cap_s: float, jitter: float, random: "Random") -> float:
    """Return the wait after ``misses`` answers in a row that moved nothing: first, 2 x first, 4 x first … up to the
    cap.

    ``jitter`` is a fraction: 0.1 spreads each wait over ±10 %.
    """
    exact: float = min(cap_s, first_s * 2.0 ** min(misses, _DOUBLINGS))
    return min(cap_s, exact * random.uniform(1 - jitter, 1 + jitter))
