"""The program: each command explains itself, does one thing, and fails with one clear line."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from reference_client.__main__ import main
from reference_client.config import ConfigError
from reference_client.settings import Settings
from reference_client.stores.sqlite import SQLiteStore

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from click.testing import Result

    from tests.reference_client.conftest import ManualClock, Say, Story

    Run = Callable[..., Result]

COMMANDS = ["submit", "work", "show", "cancel", "decide", "reconcile", "webhooks", "escalate", "audit", "subject"]


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    path = tmp_path / "reference_client.json"
    path.write_text(
        json.dumps(
            {
                "base_url": "http://127.0.0.1:9",
                "credential": "env:JOBS_AUTH",
                "store": str(tmp_path / "operations.sqlite"),
                "timing": {
                    "request_timeout_s": 0.5,
                    "poll_first_s": 0.01,
                    "poll_cap_s": 0.02,
                    "create_deadline_s": 0.6,
                    "lease_s": 1,
                },
            }
        )
    )
    return path


@pytest.fixture
def run(settings: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("REFERENCE_CLIENT_SETTINGS", str(settings))
    monkeypatch.setenv("JOBS_AUTH", "Bearer canary-1234")

    def invoke(*words: str, body: str = "{}") -> Result:
        return CliRunner().invoke(main, words, input=body)

    return invoke


@pytest.fixture
def submitted(run: Run) -> Run:
    assert run("submit", "op-1", "--authorised-by", "ann", body='{"kind":"report"}').exit_code == 0
    return run


def test_help_names_every_command(run: Run) -> None:
    result = run("--help")
    assert result.exit_code == 0
    assert all(command in result.output for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(run: Run, command: str) -> None:
    result = run(command, "--help")
    assert result.exit_code == 0
    assert len(result.output.splitlines()) > 4


def test_submit_is_idempotent_and_refuses_another_request(submitted: Run) -> None:
    again = submitted("submit", "op-1", "--authorised-by", "bob", body='{"kind": "report"}')
    assert (again.exit_code, again.output) == (0, "op-1: create_pending (on record already)\n")
    other = submitted("submit", "op-1", "--authorised-by", "ann", body='{"kind":"other"}')
    assert other.exit_code == 1
    assert other.output.startswith("Error: operation op-1 is on record with another request")
    assert len(other.output.splitlines()) == 1


def test_submit_reads_a_file(run: Run, tmp_path: Path) -> None:
    (tmp_path / "body.json").write_text('{"kind":"report"}')
    assert run("submit", "op-1", "--authorised-by", "ann", "--body", str(tmp_path / "body.json")).exit_code == 0


@pytest.mark.parametrize("body", ["", "{", "[]", '"x"'])
def test_submit_refuses_a_body_that_is_no_object(run: Run, body: str) -> None:
    result = run("submit", "op-1", "--authorised-by", "ann", body=body)
    assert result.exit_code == 1
    assert "the body" in result.output


def test_show_tells_the_story_from_the_history(submitted: Run) -> None:
    submitted("cancel", "op-1", "--who", "ann", "--why", "the wrong month")
    lines = submitted("show", "op-1").output.splitlines()
    assert lines[0] == "op-1: create_pending, no job known"
    assert "· → create_pending" in lines[2]
    assert "[stop command of ann] the wrong month" in lines[3]
    assert submitted("show").output == "op-1: create_pending\n"


def test_show_as_json_has_record_and_history_and_neither_body_nor_token(submitted: Run) -> None:
    result = submitted("show", "op-1", "--json")
    shown = json.loads(result.output)
    assert shown["record"]["state"] == "create_pending"
    assert len(shown["history"]) == 1
    assert "idempotency_token" not in result.output
    assert "request_body" not in result.output
    assert [each["operation_id"] for each in json.loads(submitted("show", "--json").output)] == ["op-1"]


@pytest.mark.parametrize(
    "words",
    [
        ("show", "op-9"),
        ("cancel", "op-9", "--why", "x"),
        ("reconcile", "op-9", "--why", "x"),
        ("decide", "op-9", "--state", "failed", "--why", "x"),
        ("escalate", "op-9"),
        ("work", "op-9", "--until-rest"),
    ],
)
def test_an_unknown_operation_is_one_clear_line(run: Run, words: tuple[str, ...]) -> None:
    result = run(*words)
    assert result.exit_code == 1
    assert result.output == "Error: there is no operation 'op-9' in this store\n"


def test_a_decision_where_none_is_required_is_refused(submitted: Run) -> None:
    result = submitted("decide", "op-1", "--state", "failed", "--why", "x")
    assert result.exit_code == 1
    assert "awaits a decision" in result.output


def test_work_until_rest_says_how_it_ended(submitted: Run) -> None:
    result = submitted("work", "--until-rest")
    assert result.exit_code == 1, "it did not succeed"
    assert result.output == "op-1: human_decision_required\n"
    told = submitted("show", "op-1").output
    assert "connect_failed" in told
    assert "there is no job" in told


def test_a_person_decides_and_the_work_goes_on(submitted: Run) -> None:
    submitted("work", "--until-rest")
    assert submitted("decide", "op-1", "--state", "failed", "--who", "ann", "--why", "no provider").exit_code == 0
    assert submitted("work", "--until-rest").output == "op-1: failed\n"
    assert "[decision of ann] no provider" in submitted("show", "op-1").output


def test_the_trail_is_verified_and_its_head_can_be_kept(submitted: Run) -> None:
    head = submitted("audit", "head").output.strip()
    result = submitted("audit", "verify", "--anchor", head)
    assert (result.exit_code, result.output) == (0, f"1 entries, unbroken; head {head}\n")
    assert "no head from outside" in submitted("audit", "verify").output


def test_a_broken_trail_is_exit_1_and_names_the_entry(submitted: Run, tmp_path: Path) -> None:
    submitted("cancel", "op-1", "--why", "x")
    database = sqlite3.connect(tmp_path / "operations.sqlite")
    database.execute("DROP TRIGGER history_is_not_edited")
    database.execute("UPDATE history SET entry = replace(entry, 'stop', 'start') WHERE number = 2")
    database.commit()
    database.close()
    result = submitted("audit", "verify")
    assert result.exit_code == 1
    assert result.output.startswith("entry 2: ")


def test_an_anchor_that_is_none_is_refused(submitted: Run) -> None:
    assert "is no head" in submitted("audit", "verify", "--anchor", "nonsense").output


def test_the_escalation_packet_holds_what_support_needs(
    run: Run, settings: Path, story: Story, say: type[Say], clock: ManualClock
) -> None:
    async def fill() -> None:
        store = SQLiteStore(Settings.load(settings).store, now=clock.now)
        step = story.workflow.open("op-1", {}, target="http://x.test", authorised_by="ann", actor="w1", now=clock.now())
        await store.add(step)
        claimed = await store.claim("w1", 10)
        assert claimed is not None
        action: Any = story.workflow.next_action(claimed.operation, clock.now())
        begun = story.workflow.begin(claimed.operation, action, worker="w1", fence=1, now=clock.now())
        lease = await store.commit(claimed.lease, begun)
        answer = say.answer(202, say.job(), x_request_id="req_42")
        await store.commit(lease, story.workflow.conclude(begun.operation, answer, actor="w1", now=clock.now()))
        await store.close()

    asyncio.run(fill())
    run("cancel", "op-1", "--who", "ann", "--why", "x")
    result = run("escalate", "op-1")
    packet = json.loads(result.output)
    assert (packet["remote_job_id"], packet["provider_request_ids"]) == ("job_1", ["req_42"])
    assert packet["trace_id"]
    assert [(call["call"], call["what"]) for call in packet["calls"]] == [("create", "intent"), ("create", "outcome")]
    assert "idempotency_token" not in packet


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"base_url": "ftp://x"}, "base_url"),
        ({"base_url": "http://user:pass@host"}, "base_url"),
        ({"credential": "Bearer canary-1234"}, "no such credential reference"),
        ({"timing": {"lease_s": 0}}, "lease_s"),
        ({"timing": {"poll_jitter": 1}}, "poll_jitter"),
        ({"timing": {"poll_first_s": 9, "poll_cap_s": 1}}, "poll_cap_s"),
        ({"contract": {"lookup": {"by": "guessing"}}}, "guessing"),
        ({"surprise": 1}, "surprise"),
        ({"webhooks": {"secrets": []}}, "secrets"),
        ({"webhooks": {"secrets": ["env:X"], "port": 99999}}, "port"),
    ],
)
def test_settings_that_cannot_be_are_one_line_with_file_field_and_reason(
    run: Run, settings: Path, change: dict[str, Any], message: str
) -> None:
    settings.write_text(json.dumps(json.loads(settings.read_text()) | change))
    result = run("show")
    assert result.exit_code == 1
    assert message in result.output
    assert settings.name in result.output
    assert "canary" not in result.output
    assert len(result.output.splitlines()) == 1


def test_a_store_is_kept_to_one_provider(submitted: Run, settings: Path) -> None:
    settings.write_text(json.dumps(json.loads(settings.read_text()) | {"base_url": "http://other.test"}))
    for words in (("work", "--until-rest"), ("submit", "op-2", "--authorised-by", "ann")):
        result = submitted(*words)
        assert result.exit_code == 1
        assert "use one store for each provider" in result.output


def test_settings_that_are_not_there_are_said_so(run: Run, settings: Path) -> None:
    settings.unlink()
    assert "No such file" in run("show").output
    with pytest.raises(ConfigError, match="No such file"):
        Settings.load(settings)


def test_an_unknown_adapter_is_refused_with_those_there_are(run: Run, settings: Path) -> None:
    settings.write_text(json.dumps(json.loads(settings.read_text()) | {"adapter": "jbos"}))
    assert "'jbos' is none; one of jobs" in run("submit", "op-1", "--authorised-by", "ann").output
