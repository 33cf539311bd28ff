"""The session protocol of a process subject: what its lines may hold, and what is wrong with one that holds something
else.

Commands go to the subject's standard input, replies and notes come from its standard output, one JSON object a line.
Pure: no process here.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from harness.subject import STATES, Claim, Note

__all__ = ["PROTOCOL", "BadLine", "NoteLine", "Reply", "command_line", "go_line", "read_line"]

PROTOCOL: Final = 1
"""The version both sides speak."""


class BadLine(ValueError):
    """A line of a subject that is not of the protocol. The message says what was found and what is valid."""


class Reply(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The one answer to the command whose ``id`` is ``reply``."""

    reply: int
    ok: bool
    error: str | None = None  # ok is false: why, for a person
    protocol: int | None = None  # start
    name: str | None = None  # start
    capabilities: tuple[str, ...] = ()  # start: "webhooks", "checkpoints", "reconcile"
    url: str | None = None  # webhook_url
    claims: tuple[Claim, ...] = ()  # report


class NoteLine(msgspec.Struct, frozen=True):
    """Something the subject records as it does it. With a checkpoint number it waits for ``go``."""

    note: Note
    checkpoint: int | None


_SHOWN: Final = 120  # characters of a bad line that a message repeats


def read_line(line: bytes) -> Reply | NoteLine:
    """Understand one line of a subject's standard output.

    Raises:
        BadLine: saying what is wrong with it.
    """
    try:
        found = msgspec.json.decode(line)
    except msgspec.DecodeError as error:
        raise BadLine(f"{_show(line)} is no JSON ({error}); logs belong on standard error") from None
    if not isinstance(found, dict) or ("reply" in found) == ("note" in found):
        raise BadLine(f'{_show(line)} is neither a reply nor a note: an object with either a "reply" or a "note" key')
    try:
        if "reply" in found:
            reply = msgspec.convert(found, Reply)
            _check_claims(reply.claims)
            return reply
        checkpoint = found.pop("checkpoint", None)
        if checkpoint is not None and not isinstance(checkpoint, int):
            raise BadLine(f'{_show(line)}: "checkpoint" is a number, not {checkpoint!r}')
        return NoteLine(msgspec.convert(found, Note), checkpoint)
    except msgspec.ValidationError as error:
        raise BadLine(f"{_show(line)}: {error}") from None


def command_line(command: str, number: int, **arguments: Any) -> bytes:
    """Write one command, newline included."""
    return msgspec.json.encode({"command": command, "id": number, **arguments}) + b"\n"


def go_line(checkpoint: int, refuse: str | None) -> bytes:
    """Let a subject that waits at a checkpoint go on, or have its store refuse the write."""
    answer: dict[str, Any] = {"command": "go", "checkpoint": checkpoint}
    if refuse is not None:
        answer["refuse"] = refuse
    return msgspec.json.encode(answer) + b"\n"


def _check_claims(claims: Sequence[Claim]) -> None:
    for claim in claims:
        if claim.state not in STATES:
            raise BadLine(
                f"the claim for {claim.operation!r} has the state {claim.state!r}; one of {', '.join(sorted(STATES))}"
            )


def _show(line: bytes) -> str:
    text = line.decode("utf-8", "replace").strip()
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")
