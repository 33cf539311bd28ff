"""The rule book as a whole: how rules are entered, shown facts, counted as judged, and what becomes of one that
crashes."""

from collections.abc import Iterator

import pytest

from harness.history import Claimed, Entry, History, RunStarted
from harness.rules import registry
from harness.rules.judge import Judge
from harness.rules.registry import Needs, Rule, RuleError, RuleInfo, all_rules, rule
from harness.verdict import Finding
from tests.harness.rules.histories import SHA, Story


@pytest.fixture(autouse=True)
def _leave_the_book_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_BOOK", dict(registry._BOOK))


class Watcher(Rule):
    """Something must hold."""

    def on_claimed(self, entry: Entry, fact: Claimed) -> Iterator[Finding]:
        self.judged += 1
        if fact.state == "failed":
            yield self.finding("it failed", entry)


def entered(cls: type[Rule], name: str = "something-holds") -> RuleInfo:
    rule(id=name, requirement="W1.1", needs=Needs.REPORT)(cls)
    return next(info for info in all_rules() if info.id == name)


def test_a_rule_is_listed_with_what_its_docstring_says() -> None:
    info = entered(Watcher)
    assert (info.summary, info.needs, info.listens) == ("Something must hold.", Needs.REPORT, (Claimed,))


def test_every_rule_says_what_must_hold_and_why_it_matters() -> None:
    assert all(info.summary.endswith(".") for info in all_rules())
    assert len({info.summary for info in all_rules()}) == len(all_rules())


def test_the_book_covers_every_section_from_creating_to_records() -> None:
    assert {info.requirement.split(".")[0] for info in all_rules()} >= {f"W{number}" for number in range(1, 9)}


def test_the_same_id_is_not_entered_twice() -> None:
    entered(Watcher)
    with pytest.raises(RuleError, match="entered twice: by Watcher"):
        entered(type("Again", (Watcher,), {"__doc__": "Again."}))


@pytest.mark.parametrize(
    ("name", "requirement", "complaint"),
    [("Something", "W1.1", "kebab-case"), ("some-thing", "1.1", "no requirement"), ("some-thing", "W11.1", "W3.4")],
)
def test_a_malformed_id_or_requirement_is_refused(name: str, requirement: str, complaint: str) -> None:
    with pytest.raises(RuleError, match=complaint):
        rule(id=name, requirement=requirement, needs=Needs.WIRE)(Watcher)


def test_a_misspelt_hook_is_refused_with_the_nearest_name() -> None:
    misspelt = type("Misspelt", (Rule,), {"__doc__": "It holds.", "on_claim": lambda *_: ()})
    with pytest.raises(RuleError, match="did you mean on_claimed"):
        entered(misspelt)


def test_a_rule_that_looks_at_nothing_is_refused() -> None:
    with pytest.raises(RuleError, match="looks at nothing"):
        entered(type("Blind", (Rule,), {"__doc__": "It holds."}))


def test_a_rule_without_a_docstring_is_refused() -> None:
    with pytest.raises(RuleError, match="needs a docstring"):
        entered(type("Mute", (Watcher,), {"__doc__": None}))


def test_what_is_no_rule_is_refused() -> None:
    with pytest.raises(RuleError, match="no subclass of Rule"):
        rule(id="some-thing", requirement="W1.1", needs=Needs.WIRE)(int)  # type: ignore[type-var]


def judge_claims(info: RuleInfo, *states: str) -> Judge:
    judge = Judge([info])
    history = History(lambda: 0.0, [judge.observe])
    for state in states:
        history.record(Claimed(operation="op-1", worker="w1", state=state, at_rest=True))
    return judge


def test_a_rule_that_saw_nothing_to_evaluate_is_not_judged() -> None:
    judgement = judge_claims(entered(Watcher)).conclude()
    assert (judgement.judged, [each.rule for each in judgement.not_judged]) == ((), ["something-holds"])


def test_a_rule_that_evaluated_something_is_judged() -> None:
    judgement = judge_claims(entered(Watcher), "succeeded").conclude()
    assert (judgement.judged, judgement.not_judged) == (("something-holds",), ())


def test_a_finding_names_the_rule_the_requirement_and_the_facts() -> None:
    (finding,) = judge_claims(entered(Watcher), "succeeded", "failed").conclude().findings
    assert finding == Finding(rule="something-holds", requirement="W1.1", message="it failed", facts=(1,))


class Crashing(Watcher):
    """It holds until it crashes."""

    def on_claimed(self, entry: Entry, fact: Claimed) -> Iterator[Finding]:
        yield from super().on_claimed(entry, fact)
        raise ZeroDivisionError("by zero")


def test_a_rule_that_raises_is_crashed_and_no_longer_shown_anything() -> None:
    crashing, watcher = entered(Crashing, "it-crashes"), entered(Watcher)
    judge = Judge([crashing, watcher])
    history = History(lambda: 0.0, [judge.observe])
    for _ in range(2):
        history.record(Claimed(operation="op-1", worker="w1", state="failed", at_rest=True))
    judgement = judge.conclude()
    assert judgement.crashed == (("it-crashes", "ZeroDivisionError: by zero"),)
    assert judgement.judged == ("something-holds",)
    assert len([finding for finding in judgement.findings if finding.rule == "something-holds"]) == 2


def test_a_contract_that_nobody_can_read_leaves_every_rule_in_doubt() -> None:
    judge = Judge()
    history = History(lambda: 0.0, [judge.observe])
    history.record(
        RunStarted(scenario="x", mode="simulated", seed=0, contract={"no": 1}, timing={}, credential="", origin="")
    )
    judgement = judge.conclude()
    assert [name for name, _ in judgement.crashed] == ["(the joined facts)"]
    assert judgement.judged == ()


def test_a_lifecycle_done_right_breaks_no_rule() -> None:
    story = (
        Story()
        .told("submit")
        .noted(None, "create_pending")
        .create(retry_after=1)
        .noted("create_pending", "accepted", job="job-1")
        .lease("taken", 1)
        .noted("accepted", "observing", job="job-1")
        .poll(at=1, retry_after=1)
        .noted("observing", "observing", job="job-1")
        .moved("succeeded", at=1.5)
        .lease("renewed", 1)
        .poll("succeeded", at=2)
        .noted("observing", "result_collecting", job="job-1")
        .fetch()
        .noted("result_collecting", "succeeded", job="job-1")
        .lease("released", 1)
        .claimed("succeeded", sha=SHA, records=3, failed=0)
        .ledger("succeeded")
        .ended()
    )
    judgement = story.judgement()
    assert judgement.findings == ()
    assert judgement.crashed == ()
    assert len(judgement.judged) > 30
