"""Which scenarios apply to a client, by what it can do. Pure.

A scenario that does not apply is not run and is no verdict on the client; the report names it and says why.
"""

from collections.abc import Collection, Iterator
from typing import Final

from fake_provider.facts import Endpoint
from harness.subject import Capability
from scenarios.model import Arm, Cancel, Reconcile, Scenario, Step

__all__ = ["why_not"]

_LACKS: Final[dict[Capability, str]] = {
    "cancel": "it tells the client to cancel, and this one cannot be told so",
    "checkpoints": "it strikes at a durable write, and this client does not say when it makes one",
    "reconcile": "it tells the client to look again, and this one cannot be told so",
    "webhooks": "its provider sends webhooks, and this client takes none",
    "workers": "it has several workers on one store, and of this client only one runs at a time",
}


def why_not(scenario: Scenario, capabilities: Collection[Capability]) -> str | None:
    """Return why ``scenario`` does not apply to a client with these capabilities; None if it does."""
    missing = [_LACKS[need] for need in sorted(set(_needs(scenario))) if need not in capabilities]
    return "; ".join(missing) or None


def _needs(scenario: Scenario) -> Iterator[Capability]:
    if scenario.workers > 1:
        yield "workers"
    if scenario.contract.webhooks.enabled:
        yield "webhooks"
    for step in scenario.steps:
        yield from _step_needs(step)
    if any(fault.at.endpoint is Endpoint.STORE for fault in scenario.faults):
        yield "checkpoints"


def _step_needs(step: Step) -> Iterator[Capability]:
    if isinstance(step, Cancel):
        yield "cancel"
    elif isinstance(step, Reconcile):
        yield "reconcile"
    elif isinstance(step, Arm) and step.fault.at.endpoint is Endpoint.STORE:
        yield "checkpoints"
