"""Where reports go, and that no run is in vain, no report lost and no exit status mistaken for a verdict."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from click.testing import Result as CliResult

from harness.cli import cli
from harness.report.machine import report_of
from harness.runner import run
from harness.subjects import resolve
from harness.verdict import Outcome, Verdict
from scenarios.loading import load

ONE = ("check", "--scenario", "happy-path", "--mode", "simulated")
PRINTS = """
from harness.subjects.reference import build as build_reference

def build(host):
    print("I print what I like")
    return build_reference(host)
"""
SPOILS = """
from pathlib import Path
from tests.broken_clients.counts_one_too_few import build as build_broken

def build(host):
    Path("found").touch()
    return build_broken(host)
"""
PICKY = """
from harness.subjects.reference import build as build_reference
def build(host):
    if host.contract["idempotency"]["mechanism"] == "none":
        raise ValueError("no token, no service")
    return build_reference(host)
"""


def jobsworth(*words: str | Path) -> CliResult:
    return CliRunner().invoke(cli, [str(word) for word in words])


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--junit", "no/such/dir/j.xml"), "--junit no/such/dir/j.xml: no directory no/such/dir"),
        (("--json", ""), "--json '': an empty name"),
        (("--json", "-", "--junit", "-"), "--json - and --junit -: both on standard output would be neither"),
        (("--html", "a-file/page"), "--html a-file/page: Not a directory"),
        (("--logs", "a-file/logs"), "--logs a-file/logs: Not a directory"),
    ],
)
def test_a_place_that_cannot_be_written_to_is_found_before_anything_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a-file").touch()
    result = jobsworth(*ONE, *words)
    assert result.exit_code == 2
    assert reason in result.stderr
    assert result.stdout == ""


def test_a_search_that_could_not_keep_what_it_finds_is_not_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a-file").touch()
    for command in ("explore", "sweep"):
        result = jobsworth(command, "--save", "a-file/found")
        assert result.exit_code == 2
        assert "--save a-file/found: nothing can be written there" in result.stderr


def test_all_reports_may_lie_in_one_directory_that_is_made_for_them(tmp_path: Path) -> None:
    new = tmp_path / "new"
    reports = ("--html", new, "--logs", new / "logs", "--json", new / "report.json", "--junit", new / "junit.xml")
    assert jobsworth(*ONE, *reports).exit_code == 0
    assert {path.name for path in new.iterdir()} == {"index.html", "logs", "report.json", "junit.xml"}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
def test_a_report_that_cannot_be_written_keeps_no_other_from_it(tmp_path: Path) -> None:
    (tmp_path / "index.html").symlink_to("/dev/full")
    result = jobsworth(*ONE, "--junit", "/dev/full", "--json", tmp_path / "report.json", "--html", tmp_path)
    assert result.exit_code == 2
    assert "/dev/full: No space left on device" in result.stderr
    assert "pass: every rule that had something to judge holds" in result.stdout
    assert json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["verdict"] == "pass"


def test_what_a_client_prints_is_no_part_of_a_report_on_standard_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "prints.py").write_text(PRINTS, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    result = jobsworth(*ONE, "prints:build", "--json", "-")
    assert json.loads(result.stdout)["verdict"] == "pass"
    assert "I print what I like" in result.stderr
    assert jobsworth(*ONE, "prints:build", "--junit", "-").stdout.startswith("<testsuites ")


@pytest.mark.parametrize(
    "words", [("explore", "--examples", "5", "--steps", "5"), ("sweep", "--scenario", "happy-path", "--cores", "1")]
)
def test_what_a_search_found_is_not_lost_with_the_place_it_was_to_go_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    """While the search is under way, its folder becomes a file."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "spoils.py").write_text(SPOILS, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "spoils", raising=False)
    result = jobsworth(*words, "spoils:build", "--save", "found", "--json", "report.json")
    assert result.exit_code == 1
    assert "--save found: nothing could be written there any more; it went elsewhere" in result.stdout
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    saved = report["saved_scenario"] if words[0] == "explore" else report["saved_scenarios"][0]
    assert f" is saved as {saved}" in result.stdout
    assert Path(saved).parent.parent == tmp_path
    assert any(finding.rule in saved for finding in run(load(Path(saved)), resolve("spoils:build")).outcome.findings)


def test_what_was_judged_before_a_client_could_not_be_started_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wrong usage it stays, and no pass."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "picky.py").write_text(PICKY, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "picky", raising=False)
    stories = ("happy-path", "no-way-to-reconcile", "lost-create-response")
    words = [word for name in stories for word in ("--scenario", name)]
    result = jobsworth("check", *words, "picky:build", "--json", "report.json", "--junit", "report.xml")
    assert result.exit_code == 2
    assert "pass    simulated  happy-path" in result.stdout
    why = "the subject's factory failed: ValueError at picky.py:5: no token, no service"
    assert f"unknown: 1 of 3 runs were made, and then: {why}" in result.stdout
    assert result.stderr == f"Error: {why}\n"
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert [one["scenario"] for one in report["runs"]] == ["happy-path"]
    assert report["verdict"] == "unknown"
    assert "happy-path" in (tmp_path / "report.xml").read_text(encoding="utf-8")


def test_what_was_broken_before_a_client_could_not_be_started_is_a_failure() -> None:
    broken, fine = (
        Outcome(
            scenario="a-story",
            mode="simulated",
            seed=0,
            verdict=verdict,
            reason="so it is",
            rules_judged=3,
            rules_not_judged=(),
            faults_planned=0,
            faults_struck=0,
            findings=(),
            history_sha256="",
            reproduce="",
        )
        for verdict in (Verdict.FAIL, Verdict.PASS)
    )
    report = report_of("picky:build", 0, (fine, broken), trouble="2 of 3 runs were made, and then: no")
    assert report.verdict is Verdict.FAIL
    assert report.reason.startswith(
        "1 of 2 runs: fail; the first, a-story (simulated): so it is; 2 of 3 runs were made"
    )
    assert report_of("picky:build", 0, (fine,), trouble="and then: no").verdict is Verdict.UNKNOWN


def test_two_scenarios_of_one_name_would_hide_each_other(tmp_path: Path) -> None:
    story = "name: a-story\nsummary: Something happens.\nsteps:\n  - {at: 0, do: submit, operation: op-1}\n"
    files = [tmp_path / "one" / "a-story.yaml", tmp_path / "two" / "a-story.yaml"]
    for file in files:
        file.parent.mkdir()
        file.write_text(story, encoding="utf-8")
    result = jobsworth("check", "--scenario", files[0], "--scenario", files[1])
    assert result.exit_code == 2
    assert f"two scenarios are named 'a-story': {files[0]} and {files[1]}" in result.stderr


def test_an_exploration_under_one_contract_is_made_again_under_it(tmp_path: Path) -> None:
    words = ("explore", "tests.broken_clients.new_token_per_retry:build", "--examples", "1", "--steps", "1")
    result = jobsworth(*words, "--contract", "stripe-like", "--save", tmp_path)
    assert " --contract stripe-like\n" in result.stdout


def _listing_into(stdout: int) -> tuple[int, str]:
    """The command line as a program, with standard output there: its exit status and what it says of it."""
    command = [sys.executable, "-m", "harness", "list", "scenarios"]
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run(  # noqa: S603  our own
        command, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False, timeout=120, env=buffered
    )
    return done.returncode, done.stderr


def test_whoever_stops_reading_is_told_no_verdict() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        assert _listing_into(writing) == (141, "")
    finally:
        os.close(writing)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
def test_a_full_disk_under_standard_output_is_no_bug_of_ours() -> None:
    with Path("/dev/full").open("wb") as full:
        assert _listing_into(full.fileno()) == (2, "Error: standard output: No space left on device\n")
