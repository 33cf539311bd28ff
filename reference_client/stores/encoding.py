"""What every store does alike: the one encoding of records and commands, and the chaining of entries. Pure."""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from reference_client.audit import Head, Link, encode_entry, link_hash
from reference_client.operation import Command, HistoryEntry, Operation
from reference_client.stores.protocol import Lease, LeaseLost, UnknownOperation

__all__ = ["chained", "decode_command", "decode_operation", "encode", "lost", "unknown"]

_COMMAND: Final[msgspec.json.Decoder[Command]] = msgspec.json.Decoder(Command)

encode = msgspec.json.Encoder().encode
decode_operation = msgspec.json.Decoder(Operation).decode
decode_command = _COMMAND.decode


def chained(head: Head, entries: Iterable[HistoryEntry]) -> Iterator[Link]:
    """Chain entries on to ``head``, and yield them as a store is to hold them."""
    number, previous = head.number, head.hash
    for entry in entries:
        number += 1
        encoded = encode_entry(entry)
        previous = link_hash(previous, number, encoded)
        yield Link(number, entry.operation_id, entry.before, entry.after, encoded, previous)


def lost(lease: Lease) -> LeaseLost:
    """Say that a lease is gone."""
    return LeaseLost(f"{lease.owner} no longer holds lease {lease.fence} on {lease.operation_id}")


def unknown(operation_id: str) -> UnknownOperation:
    """Say that there is no such operation."""
    return UnknownOperation(f"there is no operation {operation_id!r} in this store")
