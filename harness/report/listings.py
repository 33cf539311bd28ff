"""What there is: scenarios, rules, faults, dialects and contracts, each as items with an id and a summary."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from fake_provider.contract import Contract

__all__ = ["KINDS", "Item", "listing"]

Item = dict[str, Any]


def _scenarios() -> list[Item]:
    from scenarios.loading import load_catalogue

    return [
        {
            "id": name,
            "summary": scenario.summary,
            "requirements": list(scenario.requirements),
            "modes": list(scenario.modes),
            "faults": [f"{fault.kind} at {fault.at}" for fault in scenario.faults],
        }
        for name, scenario in load_catalogue().items()
    ]


def _rules() -> list[Item]:
    import harness.rules  # noqa: F401  enters every rule in the book
    from harness.rules.registry import all_rules

    return [
        {"id": rule.id, "summary": rule.summary, "requirement": rule.requirement, "needs": str(rule.needs)}
        for rule in all_rules()
    ]


def _faults() -> list[Item]:
    from fake_provider.faults import KINDS as FAULTS

    return [
        {
            "id": name,
            "summary": kind.summary(),
            "commit_points": [
                f"{endpoint}:{point}" for endpoint, points in kind.strikes_at.items() for point in points
            ],
        }
        for name, kind in FAULTS.items()
    ]


def _dialects() -> list[Item]:
    from fake_provider.dialects import DIALECTS

    return [{"id": name, "summary": dialect.summary} for name, dialect in DIALECTS.items()]


def _contracts() -> list[Item]:
    from fake_provider.presets import PRESETS

    return [{"id": name, "summary": _promises(contract)} for name, contract in PRESETS.items()]


def _promises(contract: "Contract") -> str:
    """A contract in one line: the promises that differ between providers."""
    spoken = {
        "idempotency": contract.idempotency.mechanism,
        "look-up": contract.lookup.by.removeprefix("by_"),
        "create": contract.create_answer,
        "cancel": contract.cancel.effect,
        "Retry-After": contract.status.retry_after,
        "result": contract.result.kind,
        "webhooks": "yes" if contract.webhooks.enabled else "none",
    }
    return ", ".join(f"{what} {value.replace('_', ' ')}" for what, value in spoken.items())


KINDS: Final[Mapping[str, Callable[[], list[Item]]]] = MappingProxyType(
    {
        "scenarios": _scenarios,
        "rules": _rules,
        "faults": _faults,
        "dialects": _dialects,
        "contracts": _contracts,
    }
)
"""What can be listed."""


def listing(kind: str) -> list[Item]:
    """Return the items of one of :data:`KINDS`: each with ``id``, ``summary`` and what belongs to the kind."""
    return KINDS[kind]()
