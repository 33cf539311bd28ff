"""How findings speak of facts: the same words for the same thing in every message."""

from fake_provider.facts import Endpoint
from harness.history import Entry
from harness.rules.views import Exchange

__all__ = ["answered", "at", "seconds", "sent"]


def seconds(amount: float) -> str:
    """An amount of time, to the millisecond: ``1.25 s``."""
    return f"{round(amount, 3):g} s"


def at(entry: Entry) -> str:
    """When, and where in the history: ``at 1.25 s (#12)``."""
    return f"at {seconds(entry.at)} (#{entry.seq})"


def sent(exchange: Exchange) -> str:
    """Who sent what, when: ``w1's create at 1.25 s (#12)``."""
    endpoint = exchange.request.endpoint
    what = "request to another address" if endpoint is Endpoint.OTHER else endpoint
    return f"{exchange.request.worker}'s {what} {at(exchange.sent)}"


def answered(exchange: Exchange) -> str:
    """What came of it: ``answered 202 at 1.3 s (#14)``, ``not answered (lost at 2 s, #9)``."""
    if exchange.ended is None or exchange.answer is None:
        return "not yet answered"
    if exchange.answer.status is None or not exchange.maybe_read:
        return f"not answered ({exchange.answer.fate} {at(exchange.ended)})"
    return f"answered {exchange.answer.status} {at(exchange.ended)}"
