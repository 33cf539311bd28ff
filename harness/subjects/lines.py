"""The session protocol of a process subject: what its lines may hold, and what is wrong with one that holds something
else.

Commands go to the subject's standard input, replies and notes come from its standard output, one JSON object a line.
Pure: no process here.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from harness.subject import STATES, Capability, Claim, Note

__all__ = [
    "PROTOCOL",
    "BadLine",
    "Cancel",
    "Command",
    "Decide",
    "Go",
    "NoteLine",
    "Reconcile",
    "Reply",
    "Report",
    "Start",
    "Stop",
    "Submit",
    "WebhookUrl",
    "check_claim",
    "read_line",
    "schema",
    "write_line",
]

PROTOCOL: Final = 1
"""The version both sides speak."""


class Command(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="command"):
    """What a subject is told; each gets one reply, which names its ``id``."""

    id: int


class Start(Command, frozen=True, kw_only=True, tag="start"):
    protocol: int
    worker: str
    base_url: str
    state_dir: str
    contract: Mapping[str, Any]  # a fake_provider.contract.Contract as JSON
    timing: Mapping[str, float]  # a scenarios.model.Timing as JSON
    webhook_secrets: tuple[str, ...]
    checkpoints: bool
    seed: int


class WebhookUrl(Command, frozen=True, kw_only=True, tag="webhook_url"):
    pass


class Submit(Command, frozen=True, kw_only=True, tag="submit"):
    operation: str
    request: Mapping[str, Any]


class Cancel(Command, frozen=True, kw_only=True, tag="cancel"):
    operation: str
    who: str
    why: str


class Reconcile(Command, frozen=True, kw_only=True, tag="reconcile"):
    operation: str
    who: str
    why: str


class Decide(Command, frozen=True, kw_only=True, tag="decide"):
    operation: str
    who: str
    why: str
    state: str  # one of harness.subject.STATES
    job: str | None  # the operation's newest job at the provider, if there is one


class Report(Command, frozen=True, kw_only=True, tag="report"):
    pass


class Stop(Command, frozen=True, kw_only=True, tag="stop"):
    pass


class Go(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="command", tag="go"):
    """Lets a subject that waits at a checkpoint go on. It gets no reply."""

    checkpoint: int
    refuse: str | None = None  # answering a recording: the reason for which the store refuses this write


_AnyCommand = Start | WebhookUrl | Submit | Cancel | Reconcile | Decide | Report | Stop | Go


class BadLine(ValueError):
    """A line of a subject that is not of the protocol. The message says what was found and what is valid."""


class Reply(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The one answer to the command whose ``id`` is ``reply``."""

    reply: int
    ok: bool
    error: str | None = None  # ok is false: why, for a person
    protocol: int | None = None  # start
    name: str | None = None  # start
    capabilities: tuple[Capability, ...] = ()  # start
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
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadLine(f"{_show(line)} is no JSON ({error}); logs belong on standard error") from None
    if not isinstance(found, dict) or ("reply" in found) == ("note" in found):
        raise BadLine(f'{_show(line)} is neither a reply nor a note: an object with either a "reply" or a "note" key')
    try:
        if "reply" in found:
            reply = msgspec.convert(found, Reply)
            _check_claims(reply.claims)
            return reply
        checkpoint = found.pop("checkpoint", None)
        if checkpoint is not None and (not isinstance(checkpoint, int) or isinstance(checkpoint, bool)):
            raise BadLine(f'{_show(line)}: "checkpoint" is a number, not {checkpoint!r}')
        return NoteLine(msgspec.convert(found, Note), checkpoint)
    except msgspec.ValidationError as error:
        raise BadLine(f"{_show(line)}: {error}") from None


def write_line(command: Command | Go) -> bytes:
    """Write one command, newline included."""
    return msgspec.json.encode(command) + b"\n"


def schema() -> dict[str, Any]:
    """The JSON Schema of a line in either direction, for ``docs/subject-protocol.schema.json``."""
    (told, reply, said), components = msgspec.json.schema_components(
        [_AnyCommand, Reply, Note], ref_template="#/$defs/{name}"
    )
    for note in ("Recording", "Recorded", "LeaseNote"):
        components[note]["properties"]["checkpoint"] = {"type": "integer"}
    components["Claim"]["properties"]["state"] = {"enum": sorted(STATES)}
    components["ToSubject"] = told
    components["FromSubject"] = {"anyOf": [reply, said]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"A line of the session protocol of a process subject, version {PROTOCOL}",
        "description": "ToSubject is what a subject reads from standard input, FromSubject what it may write to "
        "standard output. What its parts mean is in subject-protocol.md.",
        "anyOf": [{"$ref": "#/$defs/ToSubject"}, {"$ref": "#/$defs/FromSubject"}],
        "$defs": components,
    }


def _check_claims(claims: Sequence[Claim]) -> None:
    for claim in claims:
        check_claim(claim)


def check_claim(claim: Claim) -> Claim:
    """Return ``claim`` if its state is one that there is.

    Raises:
        BadLine: otherwise.
    """
    if claim.state not in STATES:
        raise BadLine(
            f"the claim for {claim.operation!r} has the state {claim.state!r}; one of {', '.join(sorted(STATES))}"
        )
    return claim


def _show(line: bytes) -> str:
    text = line.decode("utf-8", "replace").strip()
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")
