"""The tamper-evident trail: every history entry of a store in one hash chain, and its verification (W8.2). Pure.

Each link is the SHA-256 of the link before it, its number and the entry's bytes. Whoever edits, inserts, deletes or
reorders an entry breaks the chain at that place. Whoever cuts off its end, or rewrites it whole, leaves a chain that
is sound in itself, so a head (:class:`Head`) is kept outside from time to time and given to :func:`verify`.
"""

import hashlib
from collections.abc import Iterable
from typing import Final, Self

import msgspec

from reference_client.operation import HistoryEntry

__all__ = [
    "GENESIS",
    "AuditError",
    "Head",
    "Link",
    "Standing",
    "Verdict",
    "decode_entry",
    "encode_entry",
    "link_hash",
    "verify",
]

_ENCODER: Final = msgspec.json.Encoder()
_DECODER: Final = msgspec.json.Decoder(HistoryEntry)

encode_entry = _ENCODER.encode
decode_entry = _DECODER.decode


class AuditError(ValueError):
    """Text that is no head."""


class Head(msgspec.Struct, frozen=True):
    """The end of a chain: written ``number:hash``, small enough to be kept on paper."""

    number: int
    hash: str

    def __str__(self) -> str:
        return f"{self.number}:{self.hash}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a head.

        Raises:
            AuditError: if ``text`` is none.
        """
        number, _, digest = text.strip().partition(":")
        if not (number.isascii() and number.isdigit()) or len(digest) != 64 or set(digest) - set("0123456789abcdef"):
            raise AuditError(
                f"{text[:80]!r} is no head; write number:hash, with 64 hex digits, as `audit head` prints it"
            )
        return cls(int(number), digest)


GENESIS: Final = Head(0, "0" * 64)
"""The head of a store without history."""


class Link(msgspec.Struct, frozen=True):
    """One entry as the store holds it; the columns beside the entry are checked against it."""

    number: int
    operation_id: str
    before: str | None
    after: str
    entry: bytes
    hash: str


class Standing(msgspec.Struct, frozen=True):
    """Where an operation stands on record: its state, twice, and the number of the last entry that it has taken in."""

    operation_id: str
    state: str
    record_state: str
    history_number: int


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """``problem`` is None for a sound trail; else what is wrong, and ``entry`` is the first bad entry's number."""

    entries: int
    head: Head
    entry: int | None = None
    problem: str | None = None


def link_hash(previous: str, number: int, entry: bytes) -> str:
    """Return the hash that link ``number`` must have."""
    return hashlib.sha256(b"%s\n%d\n%s" % (previous.encode(), number, entry)).hexdigest()


def verify(links: Iterable[Link], *, standing: Iterable[Standing] = (), anchors: Iterable[Head] = ()) -> Verdict:
    """Go through a whole trail.

    Args:
        links: all of it, by number.
        standing: where each operation stands on record, held against the last entry about it.
        anchors: heads kept outside, which the trail must still contain.
    """
    wanted = {anchor.number: anchor for anchor in anchors if anchor.number > 0}
    head = GENESIS
    last: dict[str, str] = {}
    for link in links:
        problem = _problem(head, link, last)
        anchor = wanted.pop(link.number, None)
        if problem is None and anchor is not None and anchor.hash != link.hash:
            problem = "the trail was rewritten: the head kept outside has another hash"
        if problem is not None:
            return Verdict(entries=head.number, head=head, entry=min(link.number, head.number + 1), problem=problem)
        head = Head(link.number, link.hash)
        last[link.operation_id] = link.after
    known = list(standing)
    reached = max([*wanted, *(each.history_number for each in known)], default=0)
    if reached > head.number:
        problem = f"the trail was truncated: it ends at {head.number}, and had reached {reached}"
        return Verdict(entries=head.number, head=head, entry=head.number + 1, problem=problem)
    for each in known:
        said = last.get(each.operation_id)
        if not said == each.state == each.record_state:
            problem = f"operation {each.operation_id} is {each.state} on record, and the trail says {said or 'nothing'}"
            return Verdict(entries=head.number, head=head, entry=each.history_number, problem=problem)
    return Verdict(entries=head.number, head=head)


def _problem(head: Head, link: Link, last: dict[str, str]) -> str | None:
    if link.number > head.number + 1:
        return f"entries {head.number + 1} to {link.number - 1} are missing"
    if link.number != head.number + 1:
        return f"entry {link.number} comes after entry {head.number}"
    if link_hash(head.hash, link.number, link.entry) != link.hash:
        return "the entry is not what it was when it was written, or another was put in its place"
    try:
        entry = decode_entry(link.entry)
    except msgspec.DecodeError as error:
        return f"the entry cannot be read: {error}"
    if (link.operation_id, link.before, link.after) != (entry.operation_id, entry.before, entry.after):
        return "the columns beside the entry do not say what it says"
    state = last.get(link.operation_id)
    if entry.before != state:
        return f"the entry starts from {entry.before}, and the one before it about {link.operation_id} ended in {state}"
    return None
