"""What the end of a one-shot program claims."""

import pytest

from harness.subject import Claim
from harness.subjects.endings import AGAIN, Refusal, Unclear, read_claim


@pytest.mark.parametrize(
    ("line", "code", "claim"),
    [
        ("", 0, Claim(operation="op-1", state="succeeded")),
        ("Wrote report.csv", 0, Claim(operation="op-1", state="succeeded")),
        ("", 1, Claim(operation="op-1", state="failed", explanation="exit status 1; KeyError: 'id'")),
        ("", -11, Claim(operation="op-1", state="failed", explanation="signal 11; KeyError: 'id'")),
        ("human_decision_required: ask Ann", 4, Claim(operation="op-1", state="human_decision_required",
                                                       explanation="ask Ann")),
        ("result_timed_out", 1, Claim(operation="op-1", state="result_timed_out")),
        ('{"state":"succeeded","remote_job":"job_1","records":3}', 0,
         Claim(operation="op-1", state="succeeded", remote_job="job_1", records=3)),
        ('{"operation":"op-1","state":"failed"}', 1, Claim(operation="op-1", state="failed")),
    ],
)  # fmt: skip
def test_last_line_and_exit_status_are_the_claim(line: str, code: int, claim: Claim) -> None:
    assert read_claim("op-1", line, code, "KeyError: 'id'") == claim


def test_the_temporary_failure_of_sysexits_asks_to_be_run_again() -> None:
    assert read_claim("op-1", "succeeded", AGAIN) is None


def test_a_program_can_refuse_what_it_is_asked() -> None:
    assert read_claim("op-1", "refused: another request", 65) == Refusal("another request")


@pytest.mark.parametrize(
    ("line", "code", "reason"),
    [
        ("succeeded", 1, "says succeeded and its exit status 1 says that it did not"),
        ("failed", 0, "says failed and its exit status 0 says succeeded"),
        ('{"state":"observing"}', 1, "says 'observing'; one of .*exit status 75"),
        ('{"state":"succeeded","job":"job_1"}', 0, "unknown field `job`"),
        ('{"state":"succeeded"', 0, "is no claim: Input data was truncated"),
        ('{"operation":"op-2","state":"succeeded"}', 0, "about 'op-2'; it was run for 'op-1'"),
    ],
)
def test_a_contradiction_is_no_claim(line: str, code: int, reason: str) -> None:
    with pytest.raises(Unclear, match=reason):
        read_claim("op-1", line, code)
