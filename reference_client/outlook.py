"""What an operation will be gone on with from: its record without what is past, its times in seconds from now. Pure.

For those who watch a client under test. Where two records agree in it, whoever takes them up does the same next, as
long as none of the deadlines passes that are named beside it.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from reference_client.lifecycle import WITHOUT_JOB, LocalState
from reference_client.operation import Operation

__all__ = ["outlook"]

_DIGITS: Final = 4
"""Of seconds: finer than any wait, coarser than the last digits of a time of day."""

_PAST: Final = frozenset(
    {
        "accepted_at",
        "answer_sha256",
        "authorised_by",
        "calls",
        "created_at",
        "explanation",
        "failure",
        "observed_at",
        "progress",
        "remote_updated_at",
        "request_body",  # its fingerprint says as much
        "trace_id",
        "version",
    }
)
"""Kept for people, or as proof: nothing is decided by them."""

_WAITS: Final = ("next_attempt_at", "next_cancel_at", "throttled_until")
_DEADLINES: Final = ("cancel_deadline", "collect_deadline", "create_deadline", "reconcile_until", "result_deadline")


def outlook(operation: Operation, now: float, *, key_lifetime_s: float) -> tuple[Mapping[str, Any], dict[str, float]]:
    """Return what decides about an operation next, and its deadlines that are to come: in so many seconds."""
    record = msgspec.structs.asdict(operation)
    for name in _PAST:
        del record[name]
    for name in _WAITS:
        record[name] = round(max(0.0, record[name] - now), _DIGITS)
    ends = {name: record.pop(name) for name in _DEADLINES}
    record["polls"] = min(operation.polls, 1)  # whether there was one
    first_sent_at, flight = record.pop("first_sent_at"), operation.in_flight
    record["is_sent"] = first_sent_at is not None
    if flight is not None:
        record["in_flight"] = (flight.call, flight.worker, flight.since == first_sent_at)
    if operation.state in WITHOUT_JOB:
        ends["token"] = None if first_sent_at is None else first_sent_at + key_lifetime_s
    else:
        del record["create_attempts"], ends["create_deadline"]
    if operation.state is not LocalState.RESULT_COLLECTING:
        del record["result_reads"]
    else:
        del ends["result_deadline"]  # it has become the one for collecting
    return record, {name: at - now for name, at in ends.items() if at is not None and at > now}
