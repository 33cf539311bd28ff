"""What outlooks have in common: what a part of the world will go on from, so that two runs can be compared in it.

Where two runs agree in all outlooks, both do the same from there on when asked the same. The outlooks themselves are
told by the parts: ``Provider.outlook``, ``KeyBook.outlook``, ``Outbox.outlook``. Pure.
"""

from typing import Final

__all__ = ["comparable_s"]

_DIGITS: Final = 4
"""Of seconds: finer than any wait of a client, coarser than the last digits of a time of day."""


def comparable_s(seconds: float) -> float:
    """Return seconds as far as two runs are compared in them."""
    return round(seconds, _DIGITS)
