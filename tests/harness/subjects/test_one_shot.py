"""One-shot commands: what becomes of programs that are killed, flood or contradict."""

import sys
from pathlib import Path
from typing import Any

from harness.history import Claimed, CommandRefused, SecretSaid
from harness.runner import Result, run
from harness.subjects import Subject
from harness.subjects.endings import AGAIN
from harness.verdict import Verdict
from scenarios.model import Scenario

PREAMBLE = """
import json, os, pathlib, sys, time, urllib.request
state = pathlib.Path(os.environ["STATE_DIR"])
operation = os.environ["OPERATION_ID"]
def create():
    request = urllib.request.Request(
        os.environ["PROVIDER_URL"] + "/v1/jobs",
        data=pathlib.Path(os.environ["REQUEST_FILE"]).read_bytes(),
        headers={
            "Authorization": os.environ["JOBSWORTH_AUTHORIZATION"],
            "Content-Type": "application/json",
            "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "Idempotency-Key": "3f2c1a7e5b9d4e0c8a6f1b2d3c4e5f60",
        },
    )
    return json.load(urllib.request.urlopen(request, timeout=5))["id"]
"""


def story(**more: Any) -> Scenario:
    return Scenario.model_validate(
        {
            "name": "a-story",
            "summary": "Something happens.",
            "steps": [{"at": 0, "do": "submit", "operation": "op-1"}],
            "timing": {
                "create_deadline_s": 0.5,
                "result_deadline_s": 0.5,
                "cancel_deadline_s": 0.5,
                "lease_s": 0.1,
                "poll_first_s": 0.1,
            },
            "drain_s": 0.5,
            **more,
        }
    )


def carry_out(tmp_path: Path, program: str, scenario: Scenario | None = None) -> Result:
    file = tmp_path / "client.py"
    file.write_text(PREAMBLE + program, encoding="utf-8")
    subject = Subject(name="a client", command=(sys.executable, "-I", "-S", str(file)), one_shot=True)
    return run(scenario or story(), subject)


def claims(result: Result) -> list[Claimed]:
    return [entry.fact for entry in result.history if isinstance(entry.fact, Claimed)]


def test_a_killed_program_is_run_again_on_the_same_state_directory(tmp_path: Path) -> None:
    result = carry_out(
        tmp_path,
        """
if (state / "been-here").exists():
    print(json.dumps({"state": "human_decision_required", "explanation": "I was here before"}))
    sys.exit(1)
(state / "been-here").touch()
create()
time.sleep(60)
""",
        story(
            steps=[{"at": 0, "do": "submit", "operation": "op-1"}, {"at": 0.1, "do": "start", "worker": "w1"}],
            faults=[{"kind": "kill", "at": "create#1:committed"}],
        ),
    )
    assert [claim.explanation for claim in claims(result)] == ["I was here before"]
    assert result.outcome.faults_struck == 1


def test_a_program_that_asks_for_it_is_run_again(tmp_path: Path) -> None:
    result = carry_out(
        tmp_path,
        f"""
(state / "tries").open("a").write("x")
if len((state / "tries").read_text()) < 3:
    sys.exit({AGAIN})
create()
print("human_decision_required: third time")
sys.exit(1)
""",
    )
    assert [claim.explanation for claim in claims(result)] == ["third time"]


def test_a_repeated_submit_runs_the_program_after_the_first_has_ended(tmp_path: Path) -> None:
    submit = {"at": 0, "do": "submit", "operation": "op-1"}
    result = carry_out(
        tmp_path,
        """
(state / "running").touch(exist_ok=False)
if not (state / "done").exists():
    create()
(state / "done").open("a").write("x")
(state / "running").unlink()
print(f"human_decision_required: run {(state / 'done').read_text()}")
sys.exit(1)
""",
        story(steps=[submit, submit, submit]),
    )
    assert [claim.explanation for claim in claims(result)] == ["run xxx"]


def test_a_changed_request_can_be_refused(tmp_path: Path) -> None:
    submit = {"at": 0, "do": "submit", "operation": "op-1"}
    result = carry_out(
        tmp_path,
        """
if (state / "done").exists():
    print("refused: it exists with another request")
    sys.exit(65)
(state / "done").touch()
create()
print("human_decision_required: why not")
sys.exit(1)
""",
        story(steps=[submit, {**submit, "parameters": {"other": True}}]),
    )
    refused = [entry.fact.reason for entry in result.history if isinstance(entry.fact, CommandRefused)]
    assert refused == ["it exists with another request"]
    assert [claim.state for claim in claims(result)] == ["human_decision_required"]


def test_a_program_that_floods_its_output_ends_the_run_as_unknown(tmp_path: Path) -> None:
    result = carry_out(tmp_path, "create()\nfor _ in range(1 << 10): sys.stdout.write('x' * (1 << 20))\n")
    assert result.outcome.verdict is Verdict.UNKNOWN
    assert "op-1: it wrote more than 33554432 bytes to its standard output" in result.outcome.reason


def test_a_program_that_contradicts_itself_ends_the_run_as_unknown(tmp_path: Path) -> None:
    result = carry_out(tmp_path, "create()\nprint('failed')\n")
    assert result.outcome.verdict is Verdict.UNKNOWN
    assert "op-1: the last line of its output says failed and its exit status 0 says succeeded" in result.outcome.reason


def test_a_program_that_never_ends_is_found_out_and_ended(tmp_path: Path) -> None:
    result = carry_out(tmp_path, "create()\ntime.sleep(600)\n")
    assert claims(result) == []
    assert result.outcome.verdict is Verdict.UNKNOWN
    assert result.outcome.reason == "op-1 ended as nothing anyone claims (the client was still busy with it)"


def test_a_child_that_holds_the_output_open_does_not_keep_the_run(tmp_path: Path) -> None:
    result = carry_out(
        tmp_path,
        """
if os.fork() == 0:
    time.sleep(600)
create()
print("human_decision_required: my child lives on", flush=True)
os._exit(1)
""",
    )
    assert [claim.explanation for claim in claims(result)] == ["my child lives on"]


def test_a_credential_in_the_log_is_reported_and_taken_out(tmp_path: Path) -> None:
    result = carry_out(tmp_path, "create()\nprint(os.environ['JOBSWORTH_AUTHORIZATION'], file=sys.stderr)\n")
    assert [entry.fact.where for entry in result.history if isinstance(entry.fact, SecretSaid)] == ["log"]
    assert list(result.logs.values()) == ["Bearer [secret]\n"]


def test_an_untrue_success_is_a_finding(tmp_path: Path) -> None:
    result = carry_out(tmp_path, "create()\nprint('succeeded')\n")
    assert result.outcome.verdict is Verdict.FAIL
    assert "succeeded-only-if-remote-succeeded" in {finding.rule for finding in result.outcome.findings}
