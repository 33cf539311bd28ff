"""Which scenarios apply to a client, by what it can do. Pure.

A scenario that does not apply is not run and is no verdict on the client; the report names it and says why.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from pydantic import ValidationError

from fake_provider.contract import Contract, Mechanism
from fake_provider.dialects import DIALECTS
from fake_provider.facts import Endpoint
from fake_provider.faults import Fault
from harness.patching import Marks
from harness.subject import Capability
from scenarios.model import Arm, Cancel, Decide, Kill, Reconcile, Resume, Scenario, SetClock, Start, Step, Stop

__all__ = ["retold", "sets_a_clock", "why_not", "why_not_patched", "why_not_process"]

_LACKS: Final[dict[Capability, str]] = {
    "cancel": "it tells the client to cancel, and this one cannot be told so",
    "checkpoints": "it strikes at a durable write, and this client does not say when it makes one",
    "decide": "it tells the client what a person decided, and this one cannot be told so",
    "reconcile": "it tells the client to look again, and this one cannot be told so",
    "webhooks": "its provider sends webhooks, and this client takes none",
    "workers": "it has several workers on one store, and of this client only one runs at a time",
}


_RETRIES: Final = "it strikes at a create sent again, which nothing allows at a provider that recognises none"
_SETS_A_CLOCK: Final = "it sets the clock of the client's host wrong, and there it is {whose}: run it simulated"
_HOST_KINDS: Final = frozenset({"kill", "stop"})
_KEY_KINDS: Final = frozenset({"other_job_for_token", "retry_refused", "token_forgotten"})


def why_not(scenario: Scenario, capabilities: Collection[Capability], dialect: str = "jobs") -> str | None:
    """Return why ``scenario`` does not apply to a client of these capabilities and that dialect; None if it does."""
    reasons = [_LACKS[need] for need in sorted(set(_needs(scenario))) if need not in capabilities]
    struck = {fault.at.endpoint for fault in _faults(scenario)} - {Endpoint.WEBHOOK, Endpoint.STORE}
    reasons += [
        f"it strikes at the endpoint {endpoint}, which the dialect {dialect} does not have"
        for endpoint in sorted(struck - DIALECTS[dialect].endpoints)
    ]
    return "; ".join(reasons) or None


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
    elif isinstance(step, Decide):
        yield "decide"
    elif isinstance(step, Arm) and step.fault.at.endpoint is Endpoint.STORE:
        yield "checkpoints"


def why_not_process(scenario: Scenario, capabilities: Collection[Capability]) -> str | None:
    """Return why ``scenario`` does not apply to a process with these capabilities; None if it does."""
    reasons = [why_not(scenario, capabilities)]
    if sets_a_clock(scenario):
        reasons.append(_SETS_A_CLOCK.format(whose="the clock of the whole machine"))
    return "; ".join(reason for reason in reasons if reason) or None


def why_not_patched(scenario: Scenario, marks: Marks | None) -> str | None:
    """Return why ``scenario`` does not apply to a patched client that is marked so; None if it does."""
    assert marks is not None, "only a marked factory is of a patched client"
    reasons = [why_not(scenario, marks.capabilities, marks.dialect)]
    if any(isinstance(step, Kill | Stop | Start | Resume) for step in scenario.steps) or any(
        fault.kind in _HOST_KINDS for fault in _faults(scenario)
    ):
        reasons.append("it kills or freezes the client's host, and patched code lives in the harness's own process")
    if sets_a_clock(scenario):
        reasons.append(_SETS_A_CLOCK.format(whose="the harness's own, its monotonic clock included"))
    told = retold(scenario, marks.dialect)
    if told is None:
        reasons.append(f"its story is about promises that a provider speaking {marks.dialect} does not make")
    elif told is not scenario and told.contract.idempotency.mechanism is Mechanism.NONE:
        reasons += [_RETRIES] if any(map(_strikes_at_a_retry, _faults(scenario))) else []
    return "; ".join(reason for reason in reasons if reason) or None


def sets_a_clock(scenario: Scenario) -> bool:
    """Whether the clock of a client's host is set wrong in ``scenario``, which only a simulated host can have."""
    return any(isinstance(step, SetClock) for step in scenario.steps) or any(
        fault.kind == "clock_skewed" for fault in _faults(scenario)
    )


def retold(scenario: Scenario, dialect: str) -> Scenario | None:
    """Return the scenario as it is told of a provider that speaks ``dialect``; None where that cannot be.

    Where the dialect has no words for the contract, the story is told under the dialect's own contract, but for what
    the story itself says of promises. What its author expects at the end then no longer holds, so that the rules alone
    judge.
    """
    spoken = DIALECTS[dialect]
    if spoken.cannot_promise(scenario.contract) is None:
        return scenario
    said = scenario.contract.model_dump(exclude_unset=True, exclude={"name"})
    try:
        contract = Contract.model_validate(_merged(spoken.likeness.model_dump(), said))
    except ValidationError:
        return None
    if spoken.cannot_promise(contract) is not None:
        return None
    return scenario.model_copy(update={"contract": contract, "ends": {}, "jobs": {}})


def _merged(base: Mapping[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **base,
        **{key: _merged(base[key], value) if isinstance(value, dict) else value for key, value in said.items()},
    }


def _strikes_at_a_retry(fault: Fault) -> bool:
    return fault.kind in _KEY_KINDS or (fault.at.endpoint is Endpoint.CREATE and fault.at.occurrence > 1)


def _faults(scenario: Scenario) -> Iterator[Fault]:
    yield from scenario.faults
    yield from (step.fault for step in scenario.steps if isinstance(step, Arm))
