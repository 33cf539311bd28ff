"""Judging a client of which nothing is known but its traffic: no claims, no notes, no commands, no clocks of its own.

Rules that judge from the wire do so here as anywhere else, but for those that hold the wire against what the client
was told to do: nobody here hears that. A session ends when its test does, in the midst of things; so nothing is judged
that must come about in the end.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

import msgspec

import harness.rules  # noqa: F401  enters every rule in the book
from fake_provider.contract import CancelEffect, Contract
from fake_provider.factlog import Logged
from harness.history import Entry, RunStarted
from harness.rules.judge import Judge, Judgement
from harness.rules.registry import Needs, RuleInfo, all_rules

__all__ = ["TIMED", "UNSEEN", "WireJudgement", "judge_wire", "rules_for"]

UNSEEN: Final[Mapping[str, str]] = MappingProxyType(
    {
        "cancel-only-when-commanded": "whether somebody told the client to cancel",
        "one-cancel-per-intent": "how often somebody told the client to cancel",
        "nothing-begun-after-a-stop": "whether somebody told the client to cancel",
        "stop-command-acted-upon": "whether somebody told the client to cancel",
        "observation-continues-after-cancel": "how long the client is meant to go on",
        "changed-request-is-new-operation": "which request the client was given",
        "job-is-what-was-asked-for": "which request the client was given",
        "lease-taken-over": "which of the client's workers live",
    }
)
"""Rules that judge from the wire and yet are left out: each with what they would have to know."""

TIMED: Final = frozenset(
    {
        "backs-off",
        "no-create-after-deadline",
        "no-poll-after-result-deadline",
        "no-resend-after-key-lifetime",
        "obeys-retry-after",
        "one-observer-per-job",
        "restart-continues-schedule",
        "waits-are-capped",
        "webhook-out-of-time-refused",
    }
)
"""Rules about time, left out where a session's clock is moved by hand: the client's own does not move with it."""

_START: Final = -1
"""The number of what was agreed, before the first fact, so that facts keep the numbers that the control API tells."""


class WireJudgement(msgspec.Struct, frozen=True, kw_only=True):
    """What one session came to."""

    session: str
    judgement: Judgement
    proofs: Mapping[int, Entry]  # the facts that the findings cite, by number


def rules_for(contract: Contract, *, manual_clock: bool) -> tuple[RuleInfo, ...]:
    """Return the rules that a session is judged by."""
    left_out = set(UNSEEN)
    if manual_clock:
        left_out |= TIMED
    if contract.cancel.effect is CancelEffect.UNSUPPORTED:
        left_out.add("obeys-retry-after")  # to look at once is all that a client can do when it is told to stop
    return tuple(rule for rule in all_rules() if rule.needs is Needs.WIRE and rule.id not in left_out)


def judge_wire(
    session: str, facts: Iterable[Logged], *, contract: Contract, origin: str, seed: int, manual_clock: bool
) -> WireJudgement:
    """Hold a session's facts, in their order, against the rules.

    Args:
        session: its name.
        origin: where the provider is.
        manual_clock: the session's time does not pass by itself.
    """
    judge = Judge(rules_for(contract, manual_clock=manual_clock))
    agreed = RunStarted(
        scenario=session,
        mode="process",
        seed=seed,
        contract=contract.model_dump(mode="json"),
        timing={},
        credential="",
        origin=origin,
    )
    judge.observe(Entry(_START, 0.0, agreed))
    seen: dict[int, Entry] = {}
    for logged in facts:
        entry = seen[logged.seq] = Entry(logged.seq, logged.at, logged.fact)
        judge.observe(entry)
    judgement = judge.conclude()
    cited = {seq for finding in judgement.findings for seq in finding.facts}
    return WireJudgement(session=session, judgement=judgement, proofs={seq: seen[seq] for seq in cited if seq in seen})
