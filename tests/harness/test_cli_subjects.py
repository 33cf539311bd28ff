"""The command line with programs as subjects: one-shot commands, subjects that do not come up, and their logs."""

import sys
from pathlib import Path

from click.testing import CliRunner
from click.testing import Result as CliResult

from harness.cli import cli

STORY = """\
name: a-story
summary: Something happens.
timing: {create_deadline_s: 0.5, result_deadline_s: 0.5, cancel_deadline_s: 0.5, lease_s: 0.1}
drain_s: 0.5
steps:
  - {at: 0, do: submit, operation: op-1}
"""


def jobsworth(*words: str | Path) -> CliResult:
    return CliRunner().invoke(cli, [str(word) for word in words])


def test_a_scenario_that_does_not_apply_is_named_with_the_reason_and_proves_nothing() -> None:
    result = jobsworth("check", "--scenario", "stale-lease", "--one-shot", "--", sys.executable, "-c", "pass")
    assert "not applicable, 1: it has several workers on one store, and of this client only one runs" in result.output
    assert "unknown: nothing was run" in result.output
    assert result.exit_code == 3


def test_to_replay_what_does_not_apply_is_wrong_use() -> None:
    result = jobsworth("replay", "stale-lease", "--one-shot", "--", "true")
    assert "stale-lease does not apply to true: it has several workers" in result.output
    assert result.exit_code == 2


def test_a_one_shot_subject_is_a_command() -> None:
    result = jobsworth("check", "--one-shot")
    assert "a one-shot subject is a command: --one-shot -- COMMAND" in result.output
    assert result.exit_code == 2


def test_a_subject_that_ends_at_once_is_asked_once_and_is_wrong_use() -> None:
    result = jobsworth("check", "--", sys.executable, "-c", "raise SystemExit('no module foo')")
    assert "ended before it answered the start command, with exit status 1" in result.output
    assert "standard error: no module foo" in result.output
    assert result.exit_code == 2


def test_what_programs_log_is_kept_where_it_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "a-story.yaml").write_text(STORY, encoding="utf-8")
    program = "import sys; print('I was here', file=sys.stderr); sys.exit(1)"
    command = ("--one-shot", "--", sys.executable, "-c", program)
    result = jobsworth("check", "--scenario", tmp_path / "a-story.yaml", "--logs", tmp_path / "logs", *command)
    assert result.exit_code == 1  # it claims that it failed, and nobody told it so
    assert {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "logs").iterdir()} == {
        "a-story.w1-op-1-1.log": "I was here\n"
    }


def test_a_marked_factory_is_run_patched_and_in_no_other_mode() -> None:
    spec = "examples.python_openai.naive:build"
    result = jobsworth("replay", "lost-create-response", spec)
    assert "op-1 has 2 jobs" in result.output
    assert f"reproduce: jobsworth replay lost-create-response {spec} --mode patched --seed 0" in result.output
    assert result.exit_code == 1
    refused = jobsworth("check", spec, "--mode", "simulated")
    assert f"{spec} cannot run simulated; it can run patched" in refused.output
    assert refused.exit_code == 2


def test_to_serve_a_contract_the_dialect_has_no_words_for_is_wrong_use() -> None:
    result = jobsworth("serve", "--dialect", "openai-batch", "--contract", "careful")
    assert "the dialect openai-batch cannot write down this contract: " in result.output
    assert result.exit_code == 2


def test_to_serve_a_dialect_that_there_is_not_is_one_mistake() -> None:
    result = jobsworth("serve", "--dialect", "opanai")
    assert result.output == "Error: --dialect: there is no dialect 'opanai'; one of jobs, openai-batch\n"
    assert result.exit_code == 2
