"""What chance can do: whether waits may have been drawn by a back-off with full jitter.

Under full jitter each wait is drawn evenly between nothing and a bound that doubles up to the cap. One short wait
proves nothing then, and neither does the longest of a few. Many waits in a row do: all of nearly one length, or far too
many short ones, come up so seldom that a client is not accused by accident.
"""

import math
from collections.abc import Sequence
from typing import Final

__all__ = ["SELDOM", "could_be_full_jitter"]

SELDOM: Final = 1e-6
"""What comes up more seldom than once in a million is not put down to chance."""

GRAIN: Final = 0.25
"""Of the first wait: how coarse a client's own timer may be. Waits that differ by less may have been drawn apart."""

_MOST_DOUBLINGS: Final = 32


def could_be_full_jitter(waits_s: Sequence[float], first_s: float, cap_s: float) -> bool:
    """Return whether these waits in a row may have been drawn with full jitter.

    Args:
        waits_s: in order, the first after the back-off began anew.
        first_s: the bound of the first draw.
        cap_s: the bound that it grows to.
    """
    if len(waits_s) < 2:
        return True
    bounds_s = [min(cap_s, first_s * 2.0 ** min(number, _MOST_DOUBLINGS)) for number in range(len(waits_s))]
    return not (_are_all_alike(waits_s, bounds_s, first_s * GRAIN) or _are_mostly_short(waits_s, bounds_s))


def _are_all_alike(waits_s: Sequence[float], bounds_s: Sequence[float], grain_s: float) -> bool:
    """Whether the waits lie closer together than chance would have them.

    The band that they lie in was found by looking at them: any of them may have set it, and that one tells nothing.
    """
    longest_s = max(waits_s)
    width_s = longest_s - min(waits_s) + grain_s
    shares = [min(1.0, width_s / max(bound_s, longest_s)) for bound_s in bounds_s]
    return len(waits_s) * math.prod(shares) / min(shares) < SELDOM


def _are_mostly_short(waits_s: Sequence[float], bounds_s: Sequence[float]) -> bool:
    """Whether more of the waits are short, each for its bound, than chance has it, wherever one draws the line."""
    many = len(waits_s)
    shares = sorted(min(1.0, max(0.0, wait_s) / bound_s) for wait_s, bound_s in zip(waits_s, bounds_s, strict=True))
    return any(math.comb(many, number) * share**number * many < SELDOM for number, share in enumerate(shares, start=1))
