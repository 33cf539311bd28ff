"""A record and its history, told: as a story for a person, and as the packet that goes to the provider's support
(W6.5, W10).

Everything here comes from the store alone, so it can be told by any process at any time. No credential, token or
payload is in it.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from reference_client.operation import HistoryEntry, Operation

__all__ = ["escalation_packet", "moment", "shown", "story"]

_NOT_SHOWN = frozenset({"request_body", "idempotency_token"})

_TOLD_FACTS = ("attempt", "status", "error", "request_id", "retry_after", "retry_after_ignored", "who", "expected")


def moment(at: float | None) -> str | None:
    """Write a time for people and programs: ISO 8601, UTC, to the millisecond."""
    if at is None:
        return None
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def shown(operation: Operation) -> dict[str, Any]:
    """Return the record as JSON-ready values, without the request body and the idempotency token."""
    values: dict[str, Any] = msgspec.to_builtins(operation)
    return {name: value for name, value in values.items() if name not in _NOT_SHOWN}


def story(operation: Operation, history: Sequence[HistoryEntry]) -> Iterator[str]:
    """Tell what happened, a line for each entry."""
    yield f"{operation.operation_id}: {operation.state}" + (
        f", job {operation.remote_job_id} ({operation.remote_state})" if operation.remote_job_id else ", no job known"
    )
    if operation.explanation:
        yield f"  {operation.explanation}"
    yield f"  trace {operation.trace_id}, request {operation.request_fingerprint}"
    for entry in history:
        move = (
            f"{entry.before or '·'} → {entry.after}" if entry.kind == "transition" else f"{entry.after}: {entry.kind}"
        )
        told = ", ".join(f"{name} {entry.facts[name]}" for name in _TOLD_FACTS if name in entry.facts)
        yield f"  {moment(entry.at)}  {entry.actor}  {move}  [{entry.cause}] {entry.reason}" + (
            f" ({told})" if told else ""
        )


def escalation_packet(operation: Operation, history: Sequence[HistoryEntry]) -> dict[str, Any]:
    """Return what a provider's support needs to find out about an operation (W6.5)."""
    stop = operation.stop
    return {
        "operation_id": operation.operation_id,
        "client_reference": operation.client_reference,
        "state": operation.state,
        "explanation": operation.explanation,
        "target": operation.target,
        "remote_job_id": operation.remote_job_id,
        "unfamiliar_job_ids": list(operation.unfamiliar_job_ids),
        "remote_state": operation.remote_state,
        "observed_at": moment(operation.observed_at),
        "trace_id": operation.trace_id,
        "request_fingerprint": operation.request_fingerprint,
        "authorised_by": operation.authorised_by,
        "created_at": moment(operation.created_at),
        "create_deadline": moment(operation.create_deadline),
        "result_deadline": moment(operation.result_deadline),
        "cancel_deadline": moment(operation.cancel_deadline),
        "stop": None if stop is None else {"who": stop.who, "why": stop.why, "expected": stop.expected},
        "partial_effects": list(operation.partial_effects),
        "provider_request_ids": [
            entry.facts["request_id"] for entry in history if entry.ends is not None and "request_id" in entry.facts
        ],
        "calls": [_call(entry) for entry in history if entry.begins is not None or entry.ends is not None],
    }


def _call(entry: HistoryEntry) -> dict[str, Any]:
    told = {
        "at": moment(entry.at),
        "actor": entry.actor,
        "call": entry.begins or entry.ends,
        "what": "intent" if entry.begins is not None else "outcome",
        "local_state": entry.after,
        "remote_state": entry.remote_state,
        "reason": entry.reason,
    }
    return told | {
        name: entry.facts[name] for name in ("attempt", "status", "error", "request_id") if name in entry.facts
    }
