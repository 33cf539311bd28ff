"""What a story itself says must hold at its end: where its operations may rest, and how many jobs there may be.

A breach is a finding like any other, under a name of its own. Pure. What all stories have in common is in
``harness.rules``.
"""

from collections.abc import Callable, Collection, Iterator
from typing import Final, TypeGuard

from fake_provider.facts import Endpoint, JobCreated, RequestSent
from harness.history import Claimed, Commanded, History
from harness.subject import Claim
from harness.verdict import Finding
from scenarios.model import Scenario

__all__ = ["EXPECTATION", "broken_expectations", "never_begun"]

EXPECTATION: Final = "scenario-expectation"
"""The name under which a breach of a scenario's own ``ends`` and ``jobs`` is reported."""


def broken_expectations(
    scenario: Scenario, *, claims: Collection[Claim], history: History, silence: Callable[[str], str]
) -> Iterator[Finding]:
    """Yield a finding for each expectation that does not hold.

    That an operation which was never begun is withdrawn breaks none, whatever the story is about: see
    :func:`never_begun`.

    Args:
        claims: what the workers said of their operations at the end.
        history: the run, from its first fact to its last.
        silence: says of an operation why nobody claims anything of it.
    """
    requirement = next(iter(scenario.requirements), "W10")
    stopped_unsent = set(never_begun(scenario, claims=claims, history=history))
    for operation, ends in scenario.ends.items():
        states = _states(operation, claims)
        if operation in stopped_unsent:
            continue
        if not set(states) <= set(ends) or not states:
            yield Finding(
                rule=EXPECTATION,
                requirement=requirement,
                message=f"{operation} ended as {' and '.join(states) or silence(operation)}; "
                f"this story allows {' or '.join(ends)}",
                facts=tuple(
                    entry.seq
                    for entry in history
                    if isinstance(entry.fact, Claimed) and entry.fact.operation == operation
                ),
            )
    for operation, expected in scenario.jobs.items():
        created = [
            entry for entry in history if isinstance(entry.fact, JobCreated) and entry.fact.operation == operation
        ]
        if len(created) > expected:
            yield Finding(
                rule=EXPECTATION,
                requirement=requirement,
                message=f"the provider made {len(created)} jobs for {operation}; this story allows {expected}",
                facts=tuple(entry.seq for entry in created),
            )


def never_begun(scenario: Scenario, *, claims: Collection[Claim], history: History) -> Iterator[str]:
    """Yield the operations of which the story expects otherwise, and that were withdrawn since the stop command came
    before anything was sent (W5).

    How soon a client begins is its own affair, so that this is no breach. The story did not come about, though: what
    it would have shown, it has not.
    """
    waiting = {
        operation
        for operation, ends in scenario.ends.items()
        if _states(operation, claims) == ["withdrawn"] and "withdrawn" not in ends
    }
    told = {entry.fact.operation for entry in history if _is_stop(entry.fact)} if waiting else set()
    sent = {entry.fact.operation for entry in history if _is_create(entry.fact)} if waiting else set()
    yield from sorted(waiting & told - sent)


def _is_stop(fact: object) -> TypeGuard[Commanded]:
    return isinstance(fact, Commanded) and fact.command == "cancel"


def _is_create(fact: object) -> TypeGuard[RequestSent]:
    return isinstance(fact, RequestSent) and fact.endpoint is Endpoint.CREATE


def _states(operation: str, claims: Collection[Claim]) -> list[str]:
    return sorted({claim.state for claim in claims if claim.operation == operation})
