"""The session protocol: one reply to each command, and a checkpoint at each durable write."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from reference_client.subject import PROTOCOL, Session

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

NOWHERE = "http://127.0.0.1:9"  # the discard port, where nobody listens
LIMIT_S = 10.0


class Harness:
    """The other side of a session."""

    def __init__(self) -> None:
        self.lines: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.session = Session(lambda line: self.lines.put_nowait(json.loads(line)))
        self.notes: list[dict[str, Any]] = []
        self._number = 0

    def tell(self, command: str, **arguments: Any) -> int:
        self._number += 1
        self.session.take(json.dumps({"command": command, "id": self._number, **arguments}).encode())
        return self._number

    async def next(self) -> dict[str, Any]:
        return await asyncio.wait_for(self.lines.get(), LIMIT_S)

    async def reply(self, number: int, *, refuse: str | None = None) -> dict[str, Any]:
        """Wait for a reply, letting every checkpoint go on; refuse the first write if told to."""
        while True:
            line = await self.next()
            if "note" in line:
                self.notes.append(line)
                go = {"command": "go", "checkpoint": line["checkpoint"]}
                if refuse is not None and line["note"] == "recording":
                    go["refuse"], refuse = refuse, None
                self.session.take(json.dumps(go).encode())
            elif line["reply"] == number:
                return line

    async def ask(self, command: str, /, **arguments: Any) -> dict[str, Any]:
        return await self.reply(self.tell(command, **arguments))

    async def start(self, state: Path, **more: Any) -> dict[str, Any]:
        timing = {"request_timeout_s": 1, "poll_first_s": 0.05, "poll_cap_s": 0.1, "lease_s": 2}
        given: dict[str, Any] = {
            "protocol": PROTOCOL,
            "worker": "w1",
            "base_url": NOWHERE,
            "state_dir": str(state),
            "timing": timing,
        }
        return await self.ask("start", **given | {"checkpoints": True} | more)


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Harness], Awaitable[None]]], None]:
    monkeypatch.setenv("JOBSWORTH_AUTHORIZATION", "Bearer canary-1234")

    def run(tell: Callable[[Harness], Awaitable[None]]) -> None:
        async def told() -> None:
            harness = Harness()
            try:
                await tell(harness)
            finally:
                await harness.ask("stop")

        asyncio.run(told())

    return run


def test_it_starts_and_says_what_it_can_do(play: Any, tmp_path: Path) -> None:
    async def tell(harness: Harness) -> None:
        reply = await harness.start(tmp_path, webhook_secrets=["whsec_c2VjcmV0"])
        assert reply["ok"]
        assert (reply["protocol"], reply["name"]) == (1, "reference")
        assert {"checkpoints", "decide", "reconcile", "webhooks"} <= set(reply["capabilities"])
        assert (await harness.ask("webhook_url"))["url"].startswith("http://127.0.0.1:")

    play(tell)


def test_without_webhook_secrets_it_takes_no_webhooks(play: Any, tmp_path: Path) -> None:
    async def tell(harness: Harness) -> None:
        assert "webhooks" not in (await harness.start(tmp_path))["capabilities"]
        assert (await harness.ask("webhook_url"))["url"] is None

    play(tell)


def test_a_submission_is_told_of_before_and_after_it_is_durable(play: Any, tmp_path: Path) -> None:
    async def tell(harness: Harness) -> None:
        await harness.start(tmp_path)
        assert (await harness.ask("submit", operation="op-1", request={"kind": "report"}))["ok"]
        first, second = harness.notes[:2]
        assert (first["note"], first["operation"], first["after"]) == ("recording", "op-1", "create_pending")
        assert (second["note"], second["before"], second["after"]) == ("recorded", None, "create_pending")
        assert [note["checkpoint"] for note in harness.notes] == sorted({note["checkpoint"] for note in harness.notes})

    play(tell)


def test_nothing_goes_on_until_the_checkpoint_is_opened(play: Any, tmp_path: Path) -> None:
    async def tell(harness: Harness) -> None:
        await harness.start(tmp_path)
        number = harness.tell("submit", operation="op-1", request={})
        assert (await harness.next())["note"] == "recording"
        report = harness.tell("report")
        assert await harness.next() == {"reply": report, "ok": True, "claims": []}, "not durable yet"
        harness.session.take(b'{"command":"go","checkpoint":1}')
        assert (await harness.reply(number))["ok"]

    play(tell)


def test_a_refused_write_is_refused_and_the_command_may_come_again(play: Any, tmp_path: Path) -> None:
    async def tell(harness: Harness) -> None:
        await harness.start(tmp_path)
        refused = await harness.reply(harness.tell("submit", operation="op-1", request={}), refuse="disk full")
        assert (refused["ok"], refused["error"]) == (False, "disk full")
        assert (await harness.ask("submit", operation="op-1", request={}))["ok"]

    play(tell)


def test_another_request_under_a_known_id_is_refused_with_the_reason(play: Any, tmp_path: Path) -> None:
    async def tell(harness: Harness) -> None:
        await harness.start(tmp_path)
        await harness.ask("submit", operation="op-1", request={"kind": "a"})
        assert (await harness.ask("submit", operation="op-1", request={"kind": "a"}))["ok"]
        refused = await harness.ask("submit", operation="op-1", request={"kind": "b"})
        assert not refused["ok"]
        assert "another request" in refused["error"]
        assert "\n" not in refused["error"]

    play(tell)


def test_commands_are_recorded_and_the_claims_tell_of_it(play: Any, tmp_path: Path) -> None:
    async def tell(harness: Harness) -> None:
        await harness.start(tmp_path)
        await harness.ask("submit", operation="op-1", request={})
        assert (await harness.ask("cancel", operation="op-1", who="ann", why="enough"))["ok"]
        states: list[str] = []
        while "withdrawn" not in states and len(states) < 200:
            states += [claim["state"] for claim in (await harness.ask("report"))["claims"]]
        assert states[-1] == "withdrawn", "nobody listens there, so nothing was ever sent"
        refused = await harness.ask("reconcile", operation="op-1", who="ann", why="?")
        assert "final" in refused["error"]
        refused = await harness.ask("decide", operation="op-1", who="ann", why="?", state="observing", job="job_1")
        assert "only human_decision_required awaits a decision" in refused["error"]

    play(tell)


@pytest.mark.parametrize(
    ("command", "arguments", "message"),
    [
        ("submit", {"operation": "op-1", "request": {}}, "before start"),
        ("dance", {}, "'dance' is no command; one of start"),
        ("start", {"protocol": 1}, "missing required field"),
        ("start", {"protocol": 9, "worker": "w1", "base_url": NOWHERE, "state_dir": "."}, "protocol 9"),
    ],
)
def test_what_makes_no_sense_is_answered_in_one_line(
    play: Any, command: str, arguments: dict[str, Any], message: str
) -> None:
    async def tell(harness: Harness) -> None:
        reply = await harness.ask(command, **arguments)
        assert not reply["ok"]
        assert message in reply["error"]

    play(tell)


def test_an_unknown_operation_is_refused_by_name(play: Any, tmp_path: Path) -> None:
    async def tell(harness: Harness) -> None:
        await harness.start(tmp_path)
        assert "op-9" in (await harness.ask("cancel", operation="op-9", who="ann", why="?"))["error"]

    play(tell)


def test_stop_ends_it_in_good_order(play: Any, tmp_path: Path) -> None:
    async def tell(harness: Harness) -> None:
        await harness.start(tmp_path)
        assert (await harness.ask("stop"))["ok"]
        assert harness.session.ended.is_set()

    play(tell)


def test_the_input_may_end_while_it_stops(play: Any, tmp_path: Path) -> None:
    async def tell(harness: Harness) -> None:
        await harness.start(tmp_path)
        number = harness.tell("stop")
        await asyncio.gather(harness.session.close(), harness.reply(number))
        assert harness.session.ended.is_set()

    play(tell)


def test_a_line_that_is_no_json_is_logged_and_passed_over(
    play: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def tell(harness: Harness) -> None:
        harness.session.take(b"hello\n")
        assert (await harness.start(tmp_path))["ok"]

    play(tell)
    assert "no command" in caplog.text
