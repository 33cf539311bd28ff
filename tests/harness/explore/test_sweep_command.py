"""``jobsworth sweep``: what it prints, what it writes, how it ends."""

import json
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner, Result

from harness.cli import cli
from harness.report.machine import schema

STORY = """\
name: brief
summary: The job is done when its create is answered.
contract: {create_answer: synchronous, result: {kind: inline}}
steps:
  - {at: 0, do: submit, operation: op-1}
"""


@pytest.fixture
def story(tmp_path: Path) -> Path:
    file = tmp_path / "brief.yaml"
    file.write_text(STORY)
    return file


def jobsworth(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["sweep", "--cores", "1", *map(str, arguments)])


def test_it_prints_the_counts_and_passes(story: Path) -> None:
    done = jobsworth("--scenario", story, "--most-runs", 60)
    assert done.exit_code == 0, done.output
    row = next(line for line in done.output.splitlines() if line.startswith("brief")).split()
    placements, pruned, made, outcomes, not_made = (int(cell.replace(",", "")) for cell in row[1:])
    assert placements == pruned + made + not_made
    assert 1 < outcomes < made
    assert f"one fault: {made} runs" in done.output
    assert done.output.splitlines()[-1].startswith("pass: no rule broke in")


def test_its_json_keeps_to_the_schema_and_holds_the_counts(story: Path) -> None:
    done = jobsworth("--scenario", story, "--faults", 2, "--most-runs", 40, "--json", "-")
    report = json.loads(done.stdout)
    jsonschema.validate(report, schema())
    assert report["runs_made"] == 40
    assert report["placements"] == report["pruned"] + report["runs_made"] + report["not_made"]
    assert report["seconds"] > 0
    assert [each["scenario"] for each in report["scenarios"]] == ["brief"]


def test_a_broken_client_fails_and_its_shrunk_run_is_saved(story: Path, tmp_path: Path) -> None:
    broken = "tests.broken_clients.new_token_per_retry:build"
    done = jobsworth(broken, "--scenario", story, "--most-runs", 90, "--save", tmp_path / "found")
    assert done.exit_code == 1
    assert "one-job-per-operation" in done.output
    assert f"reproduce: jobsworth sweep {broken}" in done.output
    assert (tmp_path / "found" / "swept-one-job-per-operation.yaml").is_file()


def test_a_story_that_is_broken_without_a_fault_is_said_to_be_swept_no_further(story: Path, tmp_path: Path) -> None:
    done = jobsworth("tests.broken_clients.token_as_trace:build", "--scenario", story, "--save", tmp_path)
    assert done.exit_code == 1
    assert "no fault was placed in brief: where a rule breaks without any fault, none is tried" in done.output
    passed = jobsworth("--scenario", story, "--most-runs", 5)
    assert "no fault was placed" not in passed.output


def test_more_faults_than_there_can_be_are_wrong_use(story: Path) -> None:
    done = jobsworth("--scenario", story, "--faults", 4)
    assert done.exit_code == 2
    assert "4 is not in the range 1<=x<=3" in done.output
