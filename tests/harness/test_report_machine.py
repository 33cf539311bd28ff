"""Reports for machines keep to their published schema."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from harness.report.machine import FORMAT, ExploreReport, Report, report_of, schema, to_json
from harness.verdict import Finding, NotJudged, Outcome, Verdict

FINDING = Finding(rule="one-job-per-operation", requirement="W2.4", message="two jobs", facts=(12, 19))
PUBLISHED = Path(__file__).parents[2] / "docs" / "report.schema.json"


def outcome(verdict: Verdict = Verdict.PASS, *, scenario: str = "happy-path", reason: str = "all well") -> Outcome:
    return Outcome(
        scenario=scenario,
        mode="simulated",
        seed=7,
        verdict=verdict,
        reason=reason,
        rules_judged=31,
        rules_not_judged=(NotJudged(rule="legal-transitions-only", needs="history"),),
        faults_planned=1,
        faults_struck=1,
        findings=(FINDING,) if verdict is Verdict.FAIL else (),
        history_sha256="ab" * 32,
        reproduce=f"jobsworth replay {scenario} --mode simulated --seed 7",
    )


def explored(**changes: Any) -> ExploreReport:
    whole: dict[str, Any] = {
        "format": FORMAT,
        "version": "0.1.0",
        "subject": "reference",
        "seed": 1,
        "verdict": Verdict.PASS,
        "reason": "all well",
        "runs": (),
        "examples": 200,
        "steps": 4000,
        "seconds": 1.5,
        "transitions_seen": {"accepted -> observing": 3},
        "faults_struck_by_kind": {"kill": 2},
        "commit_points_struck": {"committed": 2},
        "contract_values_seen": {"create_answer=accepted_202": 20},
        "transitions_not_taken": ["observing -> cancelled"],
        "findings": (),
        "reproduce": "jobsworth explore --seed 1",
    }
    return ExploreReport(**{**whole, **changes})


@pytest.fixture
def validator() -> jsonschema.Draft202012Validator:
    published = json.loads(PUBLISHED.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(published)
    return jsonschema.Draft202012Validator(published)


def test_the_published_schema_is_that_of_the_reports() -> None:
    assert json.loads(PUBLISHED.read_text(encoding="utf-8")) == json.loads(json.dumps(schema()))


@pytest.mark.parametrize(
    "report",
    [
        report_of("reference", 7, (outcome(), outcome(Verdict.FAIL))),
        report_of("reference", 7, ()),
        explored(),
        explored(verdict=Verdict.FAIL, findings=(FINDING,), saved_scenario=".jobsworth/found.yaml"),
    ],
    ids=["check", "nothing run", "explore", "explore with a failure"],
)
def test_every_report_keeps_to_the_schema(report: Report, validator: jsonschema.Draft202012Validator) -> None:
    validator.validate(json.loads(to_json(report)))


@pytest.mark.parametrize("key", ["format", "version", "subject", "verdict", "reason", "runs"])
def test_a_report_that_lacks_a_key_does_not_keep_to_the_schema(
    key: str, validator: jsonschema.Draft202012Validator
) -> None:
    report = json.loads(to_json(report_of("reference", 7, (outcome(),))))
    del report[key]
    assert not validator.is_valid(report)


def test_a_run_is_told_with_all_that_the_format_promises() -> None:
    (run,) = json.loads(to_json(report_of("reference", 7, (outcome(Verdict.FAIL),))))["runs"]
    assert run["findings"] == [
        {"rule": "one-job-per-operation", "requirement": "W2.4", "message": "two jobs", "facts": [12, 19]}
    ]
    assert run["rules_not_judged"] == [{"rule": "legal-transitions-only", "needs": "history"}]
    assert (run["rules_judged"], run["faults_planned"], run["faults_struck"]) == (31, 1, 1)
    assert run["reproduce"].startswith("jobsworth replay happy-path")


@pytest.mark.parametrize(
    ("runs", "verdict", "reason"),
    [
        ((), "unknown", "nothing was run"),
        ((outcome(),), "pass", "all well"),
        ((outcome(), outcome()), "pass", "all 2 runs passed"),
        (
            (outcome(), outcome(Verdict.UNKNOWN, scenario="stale-lease", reason="fault 0 never struck")),
            "unknown",
            "1 of 2 runs: unknown; the first, stale-lease (simulated): fault 0 never struck",
        ),
        (
            (outcome(Verdict.UNKNOWN), outcome(Verdict.FAIL, reason="broken: one-job-per-operation")),
            "fail",
            "1 of 2 runs: fail; the first, happy-path (simulated): broken: one-job-per-operation",
        ),
        (
            (outcome(Verdict.FAIL, reason="broken: one-job-per-operation"),),
            "fail",
            "happy-path (simulated): broken: one-job-per-operation",
        ),
    ],
)
def test_runs_merge_into_one_verdict_with_its_reason(runs: tuple[Outcome, ...], verdict: str, reason: str) -> None:
    report = report_of("reference", 0, runs)
    assert (report.verdict.value, report.reason) == (verdict, reason)
