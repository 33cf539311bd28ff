"""A verdict is never more than was seen."""

import pytest

from harness.verdict import Finding, Verdict, decide, merge

BREACH = Finding(rule="one-job-per-operation", requirement="W2.2", message="two jobs", facts=(3, 9))


def test_nothing_found_and_nothing_doubted_passes() -> None:
    assert decide(findings=[], doubts=[])[0] is Verdict.PASS


def test_a_doubt_makes_a_clean_run_unknown_and_is_the_reason() -> None:
    assert decide(findings=[], doubts=["a fault never struck"]) == (Verdict.UNKNOWN, "a fault never struck")


def test_a_proved_breach_stays_proved_whatever_else_is_doubted() -> None:
    verdict, reason = decide(findings=[BREACH], doubts=["a fault never struck"])
    assert verdict is Verdict.FAIL
    assert "one-job-per-operation" in reason


@pytest.mark.parametrize(
    ("verdicts", "merged"),
    [
        ([], Verdict.UNKNOWN),
        ([Verdict.PASS], Verdict.PASS),
        ([Verdict.PASS, Verdict.UNKNOWN], Verdict.UNKNOWN),
        ([Verdict.UNKNOWN, Verdict.FAIL, Verdict.PASS], Verdict.FAIL),
    ],
)
def test_the_worst_verdict_wins_and_none_is_unknown(verdicts: list[Verdict], merged: Verdict) -> None:
    assert merge(verdicts) is merged


def test_exit_codes_are_as_documented() -> None:
    assert {verdict.value: verdict.exit_code for verdict in Verdict} == {"pass": 0, "fail": 1, "unknown": 3}
