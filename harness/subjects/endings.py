"""How a one-shot program ends, and what it claims by that: the last line of its output, and its exit status.

For authors, all of it is in ``docs/one-shot.md``.
"""

from typing import Final

import msgspec

from harness.subject import REST_STATES, Claim
from harness.subjects.groups import status_of

__all__ = ["AGAIN", "Refusal", "Unclear", "read_claim"]

AGAIN: Final = 75
"""The exit status (EX_TEMPFAIL of sysexits.h) with which a program says: not done yet, run me again."""

_REFUSED: Final = "refused"
_SHOWN: Final = 120  # characters of a line that a message repeats


class Unclear(ValueError):
    """What a program said when it ended cannot be a claim. The message says what was found and what is valid."""


class Refusal(msgspec.Struct, frozen=True):
    """The program would not take the request, which is right for another request under a known operation id."""

    reason: str


class _Said(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A last line in JSON: a claim whose operation is known."""

    state: str
    operation: str | None = None
    remote_job: str | None = None
    result_sha256: str | None = None
    records: int | None = None
    failed_items: int | None = None
    explanation: str | None = None


def read_claim(operation: str, line: str, code: int, last_words: str | None = None) -> Claim | Refusal | None:
    """Understand how a program ended.

    Args:
        line: the last line of its output that is not blank; empty if there is none.
        code: its exit status; negative for a signal.
        last_words: the last line of its log, which explains an end without a claim.

    Returns:
        what it claims; that it refuses; or None if it wants to be run again.

    Raises:
        Unclear: the line is no claim, or says something else than the exit status.
    """
    if code == AGAIN:
        return None
    said = _read_line(operation, line)
    if said is None:
        if code == 0:
            return Claim(operation=operation, state="succeeded")
        explanation = f"{status_of(code)}; {last_words}" if last_words else status_of(code)
        return Claim(operation=operation, state="failed", explanation=explanation)
    if (code == 0) != (said.state == "succeeded"):
        raise Unclear(
            f"the last line of its output says {said.state} and its {status_of(code)} says "
            f"{'succeeded' if code == 0 else 'that it did not succeed'}: 0 is for succeeded, and only for that"
        )
    if said.state == _REFUSED:
        return Refusal(said.explanation or "no reason given")
    return Claim(
        operation=operation,
        state=said.state,
        remote_job=said.remote_job,
        result_sha256=said.result_sha256,
        records=said.records,
        failed_items=said.failed_items,
        explanation=said.explanation,
    )


def _read_line(operation: str, line: str) -> _Said | None:
    """Return what a last line says of the operation; None if it is no claim at all."""
    if line.startswith("{"):
        try:
            said = msgspec.json.decode(line, type=_Said)
        except msgspec.DecodeError as error:
            raise Unclear(f"the last line of its output, {_show(line)}, is no claim: {error}") from None
        if said.operation not in {None, operation}:
            raise Unclear(f"the last line of its output is about {said.operation!r}; it was run for {operation!r}")
        if said.state not in REST_STATES | {_REFUSED}:
            raise Unclear(
                f"the last line of its output says {said.state!r}; one of {', '.join(sorted(REST_STATES))}, "
                f"{_REFUSED}. A program that is not done ends with exit status {AGAIN}"
            )
        return said
    word, _, explanation = line.partition(":")
    if word.strip() in REST_STATES | {_REFUSED}:
        return _Said(state=word.strip(), explanation=explanation.strip() or None)
    return None


def _show(line: str) -> str:
    return repr(line if len(line) <= _SHOWN else line[:_SHOWN] + "…")
