"""What every store does alike, whatever its SQL: how it writes down and reads what it keeps, what a step asks of it
beside the record, and the words of its refusals. Pure.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from reference_client.audit import Head, Link, Standing, encode_entry, link_hash
from reference_client.lifecycle import WITHOUT_JOB
from reference_client.operation import Command, HistoryEntry, Operation
from reference_client.steps import Step
from reference_client.stores.protocol import Claimed, Given, Lease, LeaseLost, SchemaTooNew, UnknownOperation

__all__ = [
    "chained",
    "claimed",
    "decode_command",
    "decode_operation",
    "encode",
    "finds_job",
    "lost",
    "named_lease",
    "result_to_keep",
    "standings",
    "too_new",
    "unknown",
]

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


def claimed(lease: Lease, operation: Operation, waiting: Iterable[tuple[int, bytes]]) -> Claimed:
    """Return a claim, with the commands that wait: their numbers, and the commands as they are kept."""
    return Claimed(lease, operation, tuple(Given(number, decode_command(each)) for number, each in waiting))


def standings(rows: Iterable[tuple[str, str, int, bytes]]) -> list[Standing]:
    """Return where operations stand, from operation id, state, history number and record of each."""
    return [
        Standing(operation_id, state, decode_operation(record).state, number)
        for operation_id, state, number, record in rows
    ]


def named_lease(lease: Lease) -> dict[str, Any]:
    """Return what a fenced statement must be told of a lease, under the names of its parameters."""
    return {"id": lease.operation_id, "owner": lease.owner, "fence": lease.fence}


def finds_job(step: Step) -> bool:
    """Whether the operation has a job from this step on, so that the events kept for that job are its own (W4.7)."""
    return step.operation.remote_job_id is not None and any(entry.before in WITHOUT_JOB for entry in step.entries)


def result_to_keep(step: Step) -> bytes | None:
    """Return the result that the store is to keep beside the record, if the step brings one that goes there (W7.3)."""
    collected = step.operation.collected
    return step.result if collected is not None and collected.location == "store" else None


def lost(lease: Lease) -> LeaseLost:
    """Say that a lease is gone."""
    return LeaseLost(f"{lease.owner} no longer holds lease {lease.fence} on {lease.operation_id}")


def unknown(operation_id: str) -> UnknownOperation:
    """Say that there is no such operation."""
    return UnknownOperation(f"there is no operation {operation_id!r} in this store")


def too_new(where: str, version: int, known: int) -> SchemaTooNew:
    """Say that the schema at ``where`` has a version past the last one known."""
    return SchemaTooNew(f"{where} has schema version {version}; this program knows versions up to {known}")
