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

ONE = ("check", "--scenario", "happy-path", "--mode", "simulated")
PRINTS = """
from harness.subjects.reference import build as build_reference

def build(host):
    print("I print what I like")
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
