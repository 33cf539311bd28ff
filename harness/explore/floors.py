"""Floors: what an exploration must have visited before its silence means anything. Pure.

What was never visited was not tested. A run of ``explore`` counts where it has been, and where that is too little its
verdict is unknown, whatever it did not find. The floors rise with the number of examples. Of transitions, those count
too to which a client was led on purpose and where it went another way, which the report names: clients are made
differently.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import Enum
from types import MappingProxyType
from typing import Any, Final

from pydantic import BaseModel

from fake_provider.contract import Contract
from fake_provider.facts import CommitPoint
from fake_provider.faults import KINDS
from harness.explore.leads import EDGE_NAMES

__all__ = [
    "BEYOND_THE_REFERENCE",
    "KINDS_FOR_THE_CARELESS",
    "SHARES",
    "expected_kinds",
    "expected_points",
    "expected_transitions",
    "expected_values",
    "shortfalls",
    "values_of",
]

SHARES: Final = ((1000, 1.0), (200, 0.9), (50, 0.25))
"""From so many examples on, this share must be visited. A thousand are a minute's work or two, which is time enough to
be everywhere. Two hundred are the default, and nearly always everywhere too; fifty are where a third is reached by
chance alone. Of fewer nothing can be asked but that a fault struck."""

BEYOND_THE_REFERENCE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "accepted -> failed": "whoever observes without recording so goes this way; most record observing first",
        "accepted -> human_decision_required": "as above: nothing is read between accepted and observing",
        "create_unknown -> human_decision_required": "a create is given up on in reconciliation",
        "human_decision_required -> succeeded": "a result that is validated already has ended its operation",
        "result_unavailable -> human_decision_required": "nothing is called at rest, so that no breach can show",
        "result_validation_failed -> human_decision_required": "as above",
    }
)
"""Legal transitions that the reference client, and whoever is made like it, never takes. They are judged where a client
takes them, and not asked for."""

KINDS_FOR_THE_CARELESS: Final[Mapping[str, str]] = MappingProxyType(
    {"changed_body_accepted": "it strikes where another body comes with a known token, and a right client sends none"}
)
"""Fault kinds that a client in good order never meets."""

_BY_DECISION: Final = "human_decision_required -> "
_BY_RETRY: Final = frozenset(
    {
        "result_unavailable -> result_collecting",
        "result_validation_failed -> result_collecting",
        *(
            f"{rest} -> {after}"
            for rest in ("result_timed_out", "cancellation_unconfirmed")
            for after in ("result_collecting", "failed", "cancelled", "human_decision_required")
        ),
    }
)
"""What only a person's command to look again leads to."""


def expected_transitions(commands: Collection[str]) -> frozenset[str]:
    """Return the transitions that a client which takes ``commands`` can be led along."""
    return frozenset(
        name
        for name in EDGE_NAMES - BEYOND_THE_REFERENCE.keys()
        if (name not in _BY_RETRY or "reconcile" in commands)
        and (not name.startswith(_BY_DECISION) or "decide" in commands)
    )


def expected_kinds() -> frozenset[str]:
    """Return the fault kinds that must strike."""
    return frozenset(KINDS.keys() - KINDS_FOR_THE_CARELESS.keys())


def expected_points() -> frozenset[str]:
    """Return the commit points at which faults must strike."""
    return frozenset(point.value for point in CommitPoint)


def expected_values() -> frozenset[str]:
    """Return every choice that a contract leaves to a provider, as :func:`values_of` writes them."""
    return frozenset(_choices(Contract))


def values_of(contract: Contract) -> Iterator[str]:
    """Yield what a contract chose, as ``idempotency.mechanism=header``."""
    yield from _chosen(contract)


def shortfalls(
    examples: int,
    visited: Mapping[str, tuple[Collection[str], Collection[str]]],
    shares: Sequence[tuple[int, float]] | None = None,
) -> Iterator[str]:
    """Yield, for each thing that is asked for, what an exploration fell short of.

    Args:
        examples: runs that were made.
        visited: by what is visited ("fault kinds"): what was seen of it, and what is expected of it.
        shares: what is asked for, from how many examples on, the most first; :data:`SHARES` if None.
    """
    share = next((share for least, share in shares or SHARES if examples >= least), 0.0)
    for what, (seen, expected) in visited.items():
        missed = sorted(set(expected) - set(seen))
        met = len(expected) - len(missed)
        if met < share * len(expected):
            yield (
                f"{met} of {len(expected)} {what} were visited, where {examples} examples are to visit "
                f"{share:.0%}; not visited: {', '.join(missed)}"
            )


def _choices(model: type[BaseModel], above: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        kind: Any = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from _choices(kind, f"{above}{name}.")
        elif kind is bool:
            yield from (f"{above}{name}={value}" for value in ("false", "true"))
        elif isinstance(kind, type) and issubclass(kind, Enum):
            yield from (f"{above}{name}={value.value}" for value in kind)


def _chosen(part: BaseModel, above: str = "") -> Iterator[str]:
    for name in type(part).model_fields:
        value = getattr(part, name)
        if isinstance(value, BaseModel):
            yield from _chosen(value, f"{above}{name}.")
        elif isinstance(value, bool):
            yield f"{above}{name}={str(value).lower()}"
        elif isinstance(value, Enum):
            yield f"{above}{name}={value.value}"
