"""What a story itself says must hold at its end: where its operations may rest, and how many jobs there may be.

A breach is a finding like any other, under a name of its own. Pure. What all stories have in common is in
``harness.rules``.
"""

from collections.abc import Callable, Collection, Iterator
from typing import Final

from fake_provider.facts import JobCreated
from harness.history import Claimed, History
from harness.subject import Claim
from harness.verdict import Finding
from scenarios.model import Scenario

__all__ = ["EXPECTATION", "broken_expectations"]

EXPECTATION: Final = "scenario-expectation"
"""The name under which a breach of a scenario's own ``ends`` and ``jobs`` is reported."""


def broken_expectations(
    scenario: Scenario, *, claims: Collection[Claim], history: History, silence: Callable[[str], str]
) -> Iterator[Finding]:
    """Yield a finding for each expectation that does not hold.

    Args:
        claims: what the workers said of their operations at the end.
        history: the run, from its first fact to its last.
        silence: says of an operation why nobody claims anything of it.
    """
    requirement = next(iter(scenario.requirements), "W10")
    for operation, ends in scenario.ends.items():
        states = sorted({claim.state for claim in claims if claim.operation == operation})
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
