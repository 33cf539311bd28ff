"""Process subjects that are out of order: each ends the run in time, with the reason, and leaves nothing behind."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from harness.history import Claimed, SecretSaid, SubjectComplained
from harness.runner import Result, capabilities_of, run
from harness.stage import SubjectBroken, SubjectError
from harness.subjects import Subject, process
from harness.verdict import Verdict
from scenarios.dumping import dump
from scenarios.model import Scenario

PREAMBLE = """
import json, os, pathlib, socket, sys, time, urllib.request
def say(**line):
    print(json.dumps(line), flush=True)
def ok(command, **more):
    say(reply=command["id"], ok=True, **more)
def started(command):
    ok(command, protocol=1, name="test", capabilities=[])
def create(start, submit):
    urllib.request.urlopen(urllib.request.Request(
        start["base_url"] + "/v1/jobs",
        data=json.dumps(submit["request"]).encode(),
        headers={
            "Authorization": os.environ["JOBSWORTH_AUTHORIZATION"],
            "Content-Type": "application/json",
            "Idempotency-Key": "3f2c1a7e5b9d4e0c8a6f1b2d3c4e5f60",
            "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        },
    ), timeout=5)
commands = map(json.loads, sys.stdin)
"""

ANSWERS_ALL = """
for command in commands:
    if command["command"] == "start":
        start = command
        started(command)
    elif command["command"] == "report":
        ok(command, claims=[{"operation": "op-1", "state": "human_decision_required", "explanation": "I ask"}])
    else:
        ok(command)
        if command["command"] == "submit":
            create(start, command)
        elif command["command"] == "stop":
            break
"""


def story(**more: Any) -> Scenario:
    return Scenario.model_validate(
        {
            "name": "a-story",
            "summary": "Something happens.",
            "steps": [{"at": 0, "do": "submit", "operation": "op-1"}],
            "timing": {"create_deadline_s": 0.5, "result_deadline_s": 0.5, "cancel_deadline_s": 0.5, "lease_s": 0.1},
            "drain_s": 0.5,
            **more,
        }
    )


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    patience = partial(process.Patience, start_s=1.0, reply_s=0.5, command_s=0.5, stop_s=0.5)
    monkeypatch.setattr(process, "Patience", patience)


@pytest.fixture
def subject(tmp_path: Path) -> Callable[[str], Subject]:
    def written(program: str) -> Subject:
        file = tmp_path / "subject.py"
        file.write_text(PREAMBLE + program, encoding="utf-8")
        return Subject(name="a subject", command=(sys.executable, "-I", "-S", str(file)))

    return written


Write = Callable[[str], Subject]


def facts(result: Result, kind: type) -> list[Any]:
    return [entry.fact for entry in result.history if isinstance(entry.fact, kind)]


def test_a_subject_in_order_passes(subject: Write) -> None:
    result = run(story(), subject(ANSWERS_ALL))
    assert result.outcome.verdict is Verdict.PASS
    assert [claim.state for claim in facts(result, Claimed)] == ["human_decision_required"]


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (
            "print('no module foo', file=sys.stderr); sys.exit(3)",
            "ended before .* exit status 3.* standard error: no module foo",
        ),
        ("say(reply=json.loads(input())['id'], ok=False, error='no licence')", "refused to start: no licence"),
        ("say(reply=json.loads(input())['id'], ok=True, protocol=7)\ninput()", "speaks protocol 7, .* speaks 1"),
    ],
    ids=["ending at once", "refusing", "of another protocol"],
)
@pytest.mark.usefixtures("impatient")
def test_a_subject_that_will_not_start_cannot_be_put_under_test(subject: Write, program: str, reason: str) -> None:
    with pytest.raises(SubjectError, match=reason):
        run(story(), subject(program))


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("time.sleep(600)", "did not answer the start command within 1 s.* standard error: nothing"),
        (
            "ok(next(commands), protocol=1, capabilities=['cancl']); time.sleep(600)",
            "did not answer the start command within 1 s; line 1 of its standard output: .*Invalid enum value 'cancl'",
        ),
        (
            "for command in commands: started(command) if command['command'] != 'report' else ok(command, claims=[{}])",
            "w1 hangs: no reply to the report command within 0.5 s; line . of its standard output: .*missing",
        ),
        ("sys.stdout.write('x' * (1 << 21)); time.sleep(600)", "w1 wrote a line .*, and was ended"),
        ("started(next(commands)); time.sleep(600)", "w1 hangs: no reply to the .* command .*within 0.5 s"),
        (
            "for command in commands: started(command) if command['command'] != 'report' else time.sleep(600)",
            "w1 hangs: no reply to the report command within 0.5 s",
        ),
        (
            "started(next(commands))\nfor n in range(1 << 30): sys.stdout.write('x' * 1023 + '\\n')",
            "w1 wrote 20 lines that are not of the protocol, the last: line 21 .* is no JSON.*standard error",
        ),
        (
            "started(next(commands))\nfor n in range(1 << 10): sys.stdout.write('x' * (1 << 20))",
            r"w1 wrote a line [(]number 2[)] of more than 1048576 bytes, and was ended",
        ),
    ],
    ids=["silent", "misspelt", "bad-claim", "long-first-line", "deaf", "no-report", "its-log", "long-line"],
)
@pytest.mark.usefixtures("impatient")
def test_a_subject_out_of_order_ends_as_unknown_with_the_reason(subject: Write, program: str, reason: str) -> None:
    began = time.monotonic()
    outcome = run(story(), subject(program)).outcome
    assert outcome.verdict is Verdict.UNKNOWN
    assert pytest.approx(0, abs=30) == time.monotonic() - began

    assert re.search(reason, outcome.reason, re.DOTALL), outcome.reason


def test_a_flood_of_notes_ends_as_unknown_with_the_reason(subject: Write) -> None:
    flood = "started(next(commands))\nwhile True: say(note='recording', operation='op-1', after='x' * 9999)"
    outcome = run(story(), subject(flood)).outcome
    assert outcome.verdict is Verdict.UNKNOWN
    assert outcome.reason == "w1 wrote more than 33554432 bytes to its standard output, and was ended"


def test_a_gigabyte_of_log_is_read_on_and_its_end_is_kept(subject: Write) -> None:
    shout = "import threading\nthreading.Thread(target=lambda: [os.write(2, b'x' * (1 << 20)) for _ in range(1 << 10)] "
    result = run(story(), subject(shout + "and os.write(2, b'\\nthe end\\n'), daemon=True).start()\n" + ANSWERS_ALL))
    assert result.outcome.verdict is Verdict.PASS
    assert len(result.logs["w1-1"]) < 100_000


def test_a_subject_that_crashes_at_every_submit_is_told_from_one_that_says_nothing(subject: Write) -> None:
    crash = "started(next(commands))\nfor command in commands: command['command'] == 'submit' and sys.exit('boom')"
    outcome = run(story(), subject(crash)).outcome
    assert outcome.verdict is Verdict.UNKNOWN
    assert "the client crashed: exit status 1; last words: boom" in outcome.reason


def test_a_lie_is_found_out(subject: Write) -> None:
    outcome = run(story(), subject(ANSWERS_ALL.replace("human_decision_required", "succeeded"))).outcome
    assert outcome.verdict is Verdict.FAIL
    assert "succeeded-only-if-remote-succeeded" in outcome.reason


def test_a_bad_line_is_in_the_history_with_its_number(subject: Write) -> None:
    result = run(story(), subject("print('hello', flush=True)\n" + ANSWERS_ALL))
    [complaint] = facts(result, SubjectComplained)
    assert complaint.message.startswith("line 1 of its standard output: 'hello' is no JSON")
    assert complaint.message.endswith("logs belong on standard error")


def test_a_credential_in_the_log_is_reported_and_taken_out(subject: Write) -> None:
    result = run(story(), subject("os.write(2, os.environ['JOBSWORTH_AUTHORIZATION'].encode())\n" + ANSWERS_ALL))
    assert [fact.where for fact in facts(result, SecretSaid)] == ["log"]
    assert result.logs == {"w1-1": "Bearer [secret]"}


def test_a_child_that_holds_the_pipes_open_does_not_keep_the_run(subject: Write) -> None:
    result = run(story(), subject("if os.fork() == 0: time.sleep(600)\n" + ANSWERS_ALL))
    assert result.outcome.verdict is Verdict.PASS


@pytest.mark.usefixtures("impatient")
def test_what_a_subject_can_do_is_asked_once(subject: Write) -> None:
    able = subject(ANSWERS_ALL.replace("started(command)", "ok(command, protocol=1, capabilities=['cancel'])"))
    assert capabilities_of(able) == ("cancel",)
    with pytest.raises(SubjectBroken, match="did not answer the start command"):
        capabilities_of(subject("time.sleep(600)"))


def test_a_program_that_cannot_be_run_is_wrong_use(tmp_path: Path) -> None:
    (tmp_path / "no-program").write_text("", encoding="utf-8")
    with pytest.raises(SubjectError, match=r"cannot start .*Permission denied"):
        run(story(), Subject(name="none", command=(str(tmp_path / "no-program"),)))


# -- the harness itself is ended

DIARY = """
diary = pathlib.Path(os.environ["DIARY"])
if child := os.fork():
    pass
else:
    while True: time.sleep(600)
def enter(moment, start={}):
    beside = diary.with_suffix(".new")
    beside.write_text(json.dumps({"moment": moment, "pids": [os.getpid(), child], "start": start}))
    beside.rename(diary)
"""
MOMENTS = {
    "before-it-is-up": DIARY + "enter('here', next(commands)); time.sleep(600)",
    "in-the-middle": DIARY
    + ANSWERS_ALL.replace("        if command", "        enter('here', start)\n        if command").replace(
        "human_decision_required", "observing"
    ),
    "one-shot": DIARY
    + "enter('here', {'base_url': os.environ['PROVIDER_URL'], 'state_dir': os.environ['STATE_DIR']}); time.sleep(600)",
    "while-it-is-stopping": DIARY
    + ANSWERS_ALL.replace("            break", "            enter('here', start); time.sleep(600)"),
}


@pytest.fixture
def diary(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "diary.json"
    yield path
    if path.exists():  # a test that fails leaves nothing behind either
        for pid in json.loads(path.read_text(encoding="utf-8"))["pids"]:
            if is_alive(pid):
                os.kill(pid, signal.SIGKILL)


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"  # nobody may be there to reap it, in a container


def wait_until(what: Callable[[], object], within_s: float = 30) -> bool:
    until, a_moment = time.monotonic() + within_s, threading.Event()
    while not what():
        if time.monotonic() > until:
            return False
        a_moment.wait(0.01)
    return True


def is_open(url: str) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", int(url.rpartition(":")[2]))) == 0


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked up in /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_harness_that_is_ended_leaves_no_process_and_no_port(
    moment: str, number: signal.Signals, tmp_path: Path, diary: Path, subject: Write
) -> None:
    (tmp_path / "a-story.yaml").write_text(dump(story(drain_s=60)), encoding="utf-8")
    command = subject(MOMENTS[moment]).command or ()
    one_shot = ["--one-shot"] if moment == "one-shot" else []
    with subprocess.Popen(  # noqa: S603  the harness itself
        [sys.executable, "-m", "harness", "replay", str(tmp_path / "a-story.yaml"), *one_shot, "--", *command],
        env={**os.environ, "DIARY": str(diary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as harness:
        assert wait_until(diary.exists), "the subject never came there"
        harness.send_signal(number)
        _, errors = harness.communicate(timeout=30)
    noted = json.loads(diary.read_text(encoding="utf-8"))
    assert wait_until(lambda: not any(map(is_alive, noted["pids"])))
    assert not is_open(noted["start"]["base_url"])
    assert wait_until(lambda: not Path(noted["start"]["state_dir"]).exists())
    if number is not signal.SIGKILL:
        assert (harness.returncode, errors.strip()) == (130, b"interrupted")
