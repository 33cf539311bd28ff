"""Each rule on four histories: nothing to judge, holds, just holds, breaks."""

import importlib
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from harness.rules.judge import Judgement
from harness.rules.registry import all_rules
from tests.harness.rules.cases import cancelling, collecting, creating, liveness, observing, reconciling, transitions
from tests.harness.rules.cases.case import Case, Told
from tests.harness.rules.histories import Story

BROKEN_CLIENTS = Path(__file__).parents[2] / "broken_clients"

CASES: list[Case] = [
    case
    for section in (creating, reconciling, observing, transitions, cancelling, collecting, liveness)
    for case in section.CASES
]


def judged(told: Told) -> Judgement:
    story = Story()
    told(story)
    judgement = story.judgement()
    assert judgement.crashed == ()
    return judgement


def found(judgement: Judgement, rule: str) -> list[str]:
    return [finding.message for finding in judgement.findings if finding.rule == rule]


def each(outcome: str) -> list[ParameterSet]:
    return [pytest.param(case.rule, getattr(case, outcome), id=f"{case.rule}-{outcome}") for case in CASES]


def test_every_rule_in_the_book_has_its_four_histories() -> None:
    assert sorted(case.rule for case in CASES) == sorted(info.id for info in all_rules())


def test_every_rule_in_the_book_has_a_client_that_breaks_it() -> None:
    names = [path.stem for path in BROKEN_CLIENTS.glob("*.py") if not path.stem.startswith("_")]
    caught = {importlib.import_module(f"tests.broken_clients.{name}").CAUGHT_BY for name in names}
    assert caught == {info.id for info in all_rules()}


@pytest.mark.parametrize(("rule", "told"), each("nothing"))
def test_a_rule_with_nothing_to_judge_says_so(rule: str, told: Told) -> None:
    judgement = judged(told)
    assert found(judgement, rule) == []
    assert rule not in judgement.judged


@pytest.mark.parametrize(("rule", "told"), [*each("holds"), *each("just_holds")])
def test_a_rule_that_is_kept_finds_nothing(rule: str, told: Told) -> None:
    judgement = judged(told)
    assert found(judgement, rule) == []
    assert rule in judgement.judged


@pytest.mark.parametrize(("rule", "told"), each("breaks"))
def test_a_breach_is_found_once_and_proved_by_facts(rule: str, told: Told) -> None:
    judgement = judged(told)
    (finding,) = [each for each in judgement.findings if each.rule == rule]
    assert finding.facts
    assert any(f"#{seq})" in finding.message for seq in finding.facts)
    assert finding.message.endswith(".")


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("no-poll-after-result-deadline", "is read 2 after the result deadline, which passed at 20 s: 2 s late"),
        ("no-poll-after-cancel-deadline", "is read 2 after the cancel deadline, which passed at 6 s: 2 s late"),
        ("credential-only-to-its-origin", "w1's request to another address at "),
        ("harmed-result-not-taken", "and that of the provider has sha256 "),
        ("final-event-leads-to-a-read", "went by until "),
        ("reconciles-by-offered-path", "Use what it offers, or ask a person."),
        ("one-time-result-read-once", "store what came as soon as it came, and never ask again"),
    ],
)
def test_a_message_says_what_is_needed_to_act_on_it(rule: str, said: str) -> None:
    (case,) = (case for case in CASES if case.rule == rule)
    (message,) = found(judged(case.breaks), rule)
    assert said in message
