"""What CI servers read: JUnit XML, annotations, known failures, and editions of the rules."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import msgspec
import pytest
import xmlschema
from click.testing import CliRunner

from harness.cli import cli
from harness.editions import EDITIONS, UnknownEdition, as_it_is_now, edition, rules_of
from harness.known_failing import BadList, excuse, read, stale
from harness.report.annotations import annotations
from harness.report.junit import to_junit
from harness.report.machine import report_of
from harness.rules.registry import all_rules
from harness.verdict import Finding, LeftOut, Outcome, Verdict
from scenarios.loading import load_catalogue

HOSTILE = "a\x00b\x1b[31m]]> <failure/> ::error::injected\n::error::on a line of its own % \ud800"
BROKEN = "tests.broken_clients.new_token_per_retry:build"


def finding(rule: str = "same-token-on-retry", message: str = "it took another token") -> Finding:
    return Finding(rule=rule, requirement="W2.1", message=message, facts=(1,))


def outcome(
    verdict: Verdict = Verdict.PASS, *findings: Finding, scenario: str = "lost-create-response", **more: Any
) -> Outcome:
    return Outcome(
        scenario=scenario,
        mode="process",
        seed=0,
        verdict=verdict,
        reason="because",
        rules_judged=3,
        rules_not_judged=(),
        faults_planned=1,
        faults_struck=1,
        findings=findings,
        history_sha256="0" * 64,
        reproduce="jobsworth replay lost-create-response",
        **more,
    )


MIXED = report_of(
    "node client.mjs",
    0,
    (
        outcome(Verdict.PASS, scenario="happy-path"),
        outcome(Verdict.FAIL, finding(), finding("one-job-per-operation", HOSTILE)),
        outcome(Verdict.UNKNOWN, scenario="stale-lease"),
        outcome(Verdict.PASS, scenario="job-fails", known_failing=(finding(),)),
    ),
    (LeftOut(scenario="cancel-lost-inside", mode="process", reason="it cannot be told to cancel"),),
    stale=("result-gone does not break backs-off any more",),
)


# -- JUnit XML


@pytest.fixture(scope="module")
def junit_schema() -> xmlschema.XMLSchema:
    """The elements and attributes that Jenkins, GitLab and GitHub's reporters read, in our own words."""
    return xmlschema.XMLSchema(str(Path(__file__).parent / "junit.xsd"))


@pytest.mark.parametrize("report", [MIXED, report_of("x", 0, (), trouble=HOSTILE)], ids=["mixed", "nothing-run"])
def test_a_report_keeps_to_the_schema_of_junit_xml(report: Any, junit_schema: xmlschema.XMLSchema) -> None:
    junit_schema.validate(to_junit(report))


def test_each_run_is_a_test_case_with_its_verdict() -> None:
    suite = ET.fromstring(to_junit(MIXED))[0]  # noqa: S314  our own
    assert {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "6",
        "failures": "3",
        "errors": "1",
        "skipped": "1",
    }
    told = {case.get("name"): [(each.tag, each.get("type")) for each in case] for case in suite.iter("testcase")}
    assert told == {
        "happy-path": [],
        "lost-create-response": [("failure", "same-token-on-retry"), ("failure", "one-job-per-operation")],
        "stale-lease": [("error", "unknown")],
        "job-fails": [("system-out", None)],
        "cancel-lost-inside": [("skipped", "not-applicable")],
        "result-gone does not break backs-off any more": [("failure", "stale")],
    }


def test_a_failure_holds_the_message_and_the_line_that_makes_it_again() -> None:
    failure = next(ET.fromstring(to_junit(MIXED)).iter("failure"))  # noqa: S314  our own
    assert failure.get("message") == "it took another token"
    assert (
        failure.text
        == "W2.1 same-token-on-retry: it took another token\nreproduce: jobsworth replay lost-create-response"
    )


def test_what_a_client_says_cannot_become_markup() -> None:
    failures = list(ET.fromstring(to_junit(MIXED)).iter("failure"))  # noqa: S314  our own
    assert len(failures) == 3
    assert "]]> <failure/>" in str(failures[1].text)


# -- annotations


def test_each_finding_is_one_line_that_github_understands() -> None:
    lines = list(annotations(MIXED))
    assert [line.partition(" title=")[0] for line in lines] == ["::error", "::error", "::warning", "::error"]
    assert lines[0] == (
        "::error title=jobsworth%3A lost-create-response (process) breaks same-token-on-retry::"
        "it took another token%0Ajobsworth replay lost-create-response"
    )
    assert not any("\n" in line or "\r" in line for line in lines)


def test_annotations_are_written_only_in_github_actions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = ["check", BROKEN, "--scenario", "lost-create-response", "--junit", str(tmp_path / "junit.xml")]
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    assert "::error" not in CliRunner().invoke(cli, command, standalone_mode=False).output
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    assert "\n::error title=" in CliRunner().invoke(cli, command, standalone_mode=False).output
    assert 'type="one-job-per-operation"' in (tmp_path / "junit.xml").read_text(encoding="utf-8")


# -- known failing

KNOWN = {"lost-create-response": {"same-token-on-retry"}}


def test_a_known_finding_does_not_fail_the_run() -> None:
    excused = excuse(KNOWN, outcome(Verdict.FAIL, finding()))
    assert (excused.verdict, excused.reason) == (Verdict.PASS, "known to be broken: same-token-on-retry")
    assert (excused.findings, excused.known_failing) == ((), (finding(),))


def test_a_run_that_breaks_off_does_not_pass_for_its_finding_being_known() -> None:
    broken_off = msgspec.structs.replace(outcome(Verdict.FAIL, finding()), doubts=("w1 hangs",))
    excused = excuse(KNOWN, broken_off)
    assert (excused.verdict, excused.reason) == (Verdict.UNKNOWN, "w1 hangs")
    assert excused.known_failing == (finding(),)


def test_another_finding_still_does() -> None:
    excused = excuse(KNOWN, outcome(Verdict.FAIL, finding(), finding("backs-off")))
    assert (excused.verdict, excused.reason) == (Verdict.FAIL, "broken: backs-off")
    assert excuse(KNOWN, other := outcome(Verdict.FAIL, finding(), scenario="happy-path")) is other


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ([outcome()], ["lost-create-response does not break same-token-on-retry any more"]),
        ([outcome(known_failing=(finding(),)), outcome()], []),  # in one of two modes
        ([outcome(Verdict.UNKNOWN)], []),  # who knows
        ([], []),  # not run
    ],
)
def test_a_listed_finding_that_is_gone_is_stale(runs: list[Outcome], expected: list[str]) -> None:
    assert list(stale(KNOWN, runs)) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("lost-create-respons: [backs-off]", "no scenario 'lost-create-respons'; did you mean 'lost-create-response'"),
        ("happy-path: [back-off]", "no rule 'back-off'; did you mean 'backs-off'"),
        ("- happy-path", "a list of rules for each scenario"),
        ("happy-path: backs-off", "a list of rules for each scenario"),
        ("a: [", "while parsing"),
    ],
)
def test_a_list_that_cannot_be_meant_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "known.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(BadList, match=reason):
        read(tmp_path / "known.yaml", load_catalogue())


@pytest.mark.parametrize(
    ("text", "reason"),
    [("# T\u00e4ter\n".encode("latin-1"), "is not UTF-8 text"), (b"a: " + b"[" * 5_000, "nested too deeply")],
)
def test_a_list_that_nobody_could_have_written_is_refused(tmp_path: Path, text: bytes, reason: str) -> None:
    (tmp_path / "known.yaml").write_bytes(text)
    with pytest.raises(BadList, match=reason):
        read(tmp_path / "known.yaml", load_catalogue())


@pytest.mark.parametrize(
    ("listed", "code", "words"),
    [
        (["one-job-per-operation", "same-token-on-retry", "scenario-expectation"], 0, "known failing: lost-create"),
        (["one-job-per-operation"], 1, "broken: same-token-on-retry, scenario-expectation"),
        (
            ["one-job-per-operation", "same-token-on-retry", "scenario-expectation", "backs-off"],
            1,
            "listed as known failing: lost-create-response does not break backs-off any more",
        ),
    ],
)
def test_the_command_line_takes_such_a_list(tmp_path: Path, listed: list[str], code: int, words: str) -> None:
    known = tmp_path / "known.yaml"
    known.write_text(json.dumps({"lost-create-response": listed}), encoding="utf-8")
    command = ["check", BROKEN, "--scenario", "lost-create-response", "--known-failing", str(known)]
    result = CliRunner().invoke(cli, command)
    assert words in result.output
    assert result.exit_code == code


# -- editions


@pytest.mark.parametrize("number", EDITIONS)
def test_what_an_edition_names_is_there(number: int) -> None:
    """If this fails: a released edition keeps its rules and scenarios for ever."""
    assert set(edition(number).rules) <= {rule.id for rule in all_rules()}
    assert set(edition(number).scenarios) <= set(load_catalogue())


def test_the_newest_edition_names_everything() -> None:
    """If this fails: python -m harness.editions; or, if that edition was released, begin another one."""
    newest = json.loads(as_it_is_now())
    assert list(edition(EDITIONS[-1]).rules) == newest["rules"]
    assert list(edition(EDITIONS[-1]).scenarios) == newest["scenarios"]


def test_an_edition_is_judged_by_its_own_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    assert {rule.id for rule in rules_of(1)} == set(edition(1).rules)
    assert rules_of(None) == all_rules()
    with pytest.raises(UnknownEdition, match="no edition 99 of the rules; one of 1"):
        rules_of(99)
    only: Mapping[int | None, Any] = {1: [rule for rule in all_rules() if rule.id == "one-job-per-operation"]}
    monkeypatch.setattr("harness.runner.rules_of", only.__getitem__)
    result = CliRunner().invoke(cli, ["replay", "lost-create-response", BROKEN, "--rules", "1"])
    assert "broken: one-job-per-operation, scenario-expectation" in result.output
    assert "--rules 1" in result.output
