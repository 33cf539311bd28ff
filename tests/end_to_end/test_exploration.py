"""Exploration finds nothing in the reference client, and finds, shrinks and saves what is wrong with a broken one."""

import json
from itertools import count
from pathlib import Path

import msgspec
import pytest
from click import Abort
from click.testing import CliRunner

from harness.cli import cli
from harness.explore.exploration import explore
from harness.explore.machine import machine_for
from harness.known_failing import BadList
from harness.runner import run
from harness.subject import Client, Host
from harness.subjects import Subject, resolve
from harness.subjects.reference import build
from harness.verdict import Verdict
from scenarios.dumping import dump
from scenarios.loading import load
from scenarios.model import Scenario

ReferenceClient = machine_for(build).TestCase
"""The machine in someone's own suite: one line."""


def test_the_reference_client_is_never_caught_and_two_explorations_agree() -> None:
    first, second = (explore(resolve(), examples=40, steps=20, seed=1) for _ in range(2))
    assert first.findings == ()
    assert first.verdict is Verdict.PASS, first.reason
    assert first.examples >= 40
    assert first.faults_struck_by_kind
    assert msgspec.structs.replace(first, seconds=0) == msgspec.structs.replace(second, seconds=0)


@pytest.mark.parametrize(
    ("broken", "rule"),
    [
        ("new_token_per_retry", "one-job-per-operation"),
        ("claims_cancelled_on_sending", "cancelled-only-if-confirmed"),
    ],
)
def test_a_broken_client_is_found_shrunk_and_saved_and_the_file_replays(broken: str, rule: str, tmp_path: Path) -> None:
    subject = resolve(f"tests.broken_clients.{broken}:build")
    found = explore(subject, examples=300, steps=20, seed=1, save=tmp_path)
    assert found.verdict is Verdict.FAIL
    assert found.saved_scenario is not None
    scenario = load(Path(found.saved_scenario))
    assert len(scenario.steps) <= 6, dump(scenario)
    again = run(scenario, subject)
    assert [finding.rule for finding in again.outcome.findings][:1] == [found.findings[0].rule]
    assert run(scenario, resolve()).outcome.findings == ()


def test_a_retry_that_is_refused_without_a_legible_reason_is_no_failure() -> None:
    """Exploration found the reference client giving up here, while its job was running."""
    faults = [
        {"kind": "wrong_content_type", "at": "create#1:committed", "times": "until_healed"},
        {"kind": "retry_refused", "at": "create#2:received"},
    ]
    steps = [{"at": 0, "do": "submit", "operation": "op-1"}]
    story = Scenario.model_validate(
        {"name": "illegible", "summary": "Two faults at once.", "steps": steps, "faults": faults}
    )
    outcome = run(story, resolve()).outcome
    assert outcome.verdict is Verdict.PASS, outcome.reason
    assert outcome.faults_struck == 2


def test_a_rule_that_is_known_to_be_broken_hides_no_other(tmp_path: Path) -> None:
    """This client makes a new token for each attempt, which is found first; and that makes a second job."""
    subject = resolve("tests.broken_clients.new_token_per_retry:build")
    known = ("same-token-on-retry",)
    found = explore(subject, examples=100, steps=20, seed=1, save=tmp_path, known=known)
    assert {finding.rule for finding in found.findings} == {"one-job-per-operation"}
    assert found.reason.endswith("(not judged, as they are known to be broken: same-token-on-retry)")
    assert found.reproduce.endswith(" --seed 1 --known=same-token-on-retry")
    assert found.saved_scenario is not None
    broken = {finding.rule for finding in run(load(Path(found.saved_scenario)), subject).outcome.findings}
    assert broken == {"one-job-per-operation", *known}


def test_a_rule_that_there_is_not_is_no_known_one() -> None:
    with pytest.raises(BadList, match="there is no rule 'same-token-on-retries'; did you mean 'same-token-on-retry'"):
        machine_for(build, known=["same-token-on-retries"])


def test_an_exploration_that_is_interrupted_tells_where_it_has_been(monkeypatch: pytest.MonkeyPatch) -> None:
    starts = count()

    def interrupted(host: Host) -> Client:
        if next(starts) == 30:
            raise KeyboardInterrupt
        return build(host)

    found = explore(Subject(name="shop:build", factory=interrupted), examples=100, steps=20, seed=1)
    assert found.interrupted
    assert found.verdict is Verdict.UNKNOWN
    assert found.reason == f"interrupted after {found.examples} of 100 examples"
    assert found.contract_values_seen
    monkeypatch.setattr("harness.explore.exploration.explore", lambda *_, **__: found)
    result = CliRunner().invoke(cli, ["explore", "--json", "-"], standalone_mode=False)
    assert isinstance(result.exception, Abort)  # for which the program ends with 130
    assert json.loads(result.stdout)["reason"] == found.reason
