"""Lines of the session protocol: understood, or refused with what is wrong."""

import contextlib
import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.subject import Claim, Recorded, Recording
from harness.subjects.lines import BadLine, Go, NoteLine, Reply, Submit, read_line, write_line


def test_a_reply_with_claims_is_understood() -> None:
    line = b'{"reply":6,"ok":true,"claims":[{"operation":"op-1","state":"succeeded","remote_job":"job_1","records":3}]}'
    assert read_line(line) == Reply(
        reply=6, ok=True, claims=(Claim(operation="op-1", state="succeeded", remote_job="job_1", records=3),)
    )


def test_a_note_with_a_checkpoint_is_understood() -> None:
    line = b'{"note":"recording","operation":"op-1","after":"accepted","checkpoint":4}'
    assert read_line(line) == NoteLine(Recording(operation="op-1", after="accepted"), 4)


def test_a_note_without_a_checkpoint_is_understood() -> None:
    entry = {"operation": "op-1", "before": None, "after": "create_pending", "entry": "transition"}
    said = read_line(json.dumps({"note": "recorded", **entry, "actor": "w1", "cause": "c", "reason": "r"}).encode())
    assert said == NoteLine(Recorded(actor="w1", cause="c", reason="r", **entry), None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"listening on port 80", "is no JSON.*logs belong on standard error"),
        (b"[1]", "neither a reply nor a note"),
        (b'{"event":"started"}', "neither a reply nor a note"),
        (b'{"reply":1,"note":"lease"}', "neither a reply nor a note"),
        (b'{"reply":"1","ok":true}', r"Expected `int`.*\$\.reply"),
        (b'{"reply":1,"ok":true,"claim":[]}', "unknown field `claim`"),
        (b'{"reply":1,"ok":true,"claims":[{"operation":"op-1","state":"done"}]}', "state 'done'; one of accepted, "),
        (b'{"note":"remembered","operation":"op-1"}', "remembered"),
        (b'{"note":"recording","operation":"op-1","after":"accepted","checkpoint":"x"}', '"checkpoint" is a number'),
    ],
)
def test_a_line_out_of_order_is_refused_with_the_reason(line: bytes, reason: str) -> None:
    with pytest.raises(BadLine, match=reason):
        read_line(line)


@given(st.binary(max_size=200))
@example(b"\xff\xfe")
@example(b'{"reply":1e400,"ok":true}')
@example(b"[" * 5000)
def test_arbitrary_bytes_are_understood_or_refused_and_nothing_else(line: bytes) -> None:
    with contextlib.suppress(BadLine):
        read_line(line)


def test_commands_are_one_line_each() -> None:
    line = write_line(Submit(id=3, operation="op-1", request={"text": "two\nlines"}))
    assert line.count(b"\n") == 1
    assert json.loads(line) == {"command": "submit", "id": 3, "operation": "op-1", "request": {"text": "two\nlines"}}
    assert json.loads(write_line(Go(checkpoint=4, refuse="disk full"))) == {
        "command": "go",
        "checkpoint": 4,
        "refuse": "disk full",
    }
    assert json.loads(write_line(Go(checkpoint=4))) == {"command": "go", "checkpoint": 4}
