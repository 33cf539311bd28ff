"""Judging from traffic alone is fair to a correct client, and still finds what is wrong with others."""

import typing
from collections.abc import Iterator

import pytest

from fake_provider.contract import Contract
from fake_provider.factlog import Logged
from fake_provider.facts import ProviderFact
from fake_provider.sessions import HostOutOfReach, refuse_host_faults
from harness.rules.registry import Needs, all_rules
from harness.runner import run
from harness.subjects import resolve
from harness.wire_judgement import TIMED, UNSEEN, WireJudgement, judge_wire, rules_for
from scenarios.loading import load_catalogue
from scenarios.model import Scenario

TRAFFIC = typing.get_args(ProviderFact)
OUT_OF_REACH = {"start", "kill", "stop", "resume"}


def is_playable(scenario: Scenario) -> bool:
    """Whether ``jobsworth serve`` could play it: nothing is done to the client's host, and one client is there."""
    if OUT_OF_REACH & {step.do for step in scenario.steps} or scenario.workers > 1 or "simulated" not in scenario.modes:
        return False
    try:
        refuse_host_faults(scenario.faults)
    except HostOutOfReach:
        return False
    return True


PLAYABLE = {name: scenario for name, scenario in load_catalogue().items() if is_playable(scenario)}


def traffic(scenario: Scenario, subject: str | None) -> Iterator[Logged]:
    """What a provider by itself would have seen of a run."""
    numbers = iter(range(1_000_000))
    for entry in run(scenario, resolve(subject), mode="simulated").history:
        if isinstance(entry.fact, TRAFFIC):
            yield Logged(next(numbers), entry.at, typing.cast("ProviderFact", entry.fact))


def judge(scenario: Scenario, subject: str | None = None, *, manual_clock: bool = False) -> WireJudgement:
    return judge_wire(
        "mine",
        traffic(scenario, subject),
        contract=scenario.contract,
        origin="http://provider.test",
        seed=0,
        manual_clock=manual_clock,
    )


def test_a_client_that_cannot_cancel_may_look_at_once_when_told_to_stop() -> None:
    client = "tests.correct_clients.polls_slowly:build"
    assert judge(PLAYABLE["cancel-not-offered"], client).judgement.findings == ()


@pytest.mark.parametrize("name", sorted(PLAYABLE))
def test_a_correct_client_is_accused_of_nothing(name: str) -> None:
    came_to = judge(PLAYABLE[name])
    assert (came_to.judgement.findings, came_to.judgement.crashed) == ((), ())
    assert came_to.judgement.judged


@pytest.mark.parametrize(
    ("client", "scenario", "rule"),
    [
        ("new_token_per_retry", "lost-create-response", "same-token-on-retry"),
        ("no_trace_at_all", "lost-create-response", "trace-on-every-call"),
        ("polls_through_retry_after", "lost-create-response", "obeys-retry-after"),
    ],
)
def test_a_broken_client_is_found_out_and_the_facts_are_at_hand(client: str, scenario: str, rule: str) -> None:
    came_to = judge(PLAYABLE[scenario], f"tests.broken_clients.{client}:build")
    (finding, *_) = [each for each in came_to.judgement.findings if each.rule == rule]
    assert finding.facts
    assert set(finding.facts) <= set(came_to.proofs)


def test_time_is_no_matter_where_the_clock_is_moved_by_hand() -> None:
    client = "tests.broken_clients.polls_through_retry_after:build"
    assert judge(PLAYABLE["lost-create-response"], client, manual_clock=True).judgement.findings == ()


def test_only_rules_that_there_are_and_that_judge_from_the_wire_are_left_out_by_name() -> None:
    wire = {rule.id for rule in all_rules() if rule.needs is Needs.WIRE}
    assert set(UNSEEN) | TIMED <= wire
    assert {rule.id for rule in rules_for(Contract(), manual_clock=False)} == wire - set(UNSEEN)
    assert {rule.id for rule in rules_for(Contract(), manual_clock=True)} == wire - set(UNSEEN) - TIMED
