"""Contracts as known from the field, by name: likenesses in the terms of ``contract``, not copies of products."""

import difflib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from fake_provider.contract import (
    Cancel,
    CancelEffect,
    CancelMethod,
    Contract,
    CreateAnswer,
    FinishedCancel,
    Idempotency,
    InFlight,
    Lookup,
    LookupBy,
    Mechanism,
    OtherBody,
    Replays,
    Result,
    ResultKind,
    RetryAfter,
    StateWords,
    Status,
    Webhooks,
)

__all__ = ["PRESETS", "UnknownPreset", "preset"]


class UnknownPreset(ValueError):
    """There is no contract of that name. The message says which there are."""


_ALL: Final = (
    Contract(name="careful"),
    # Keys are optional and bare, replays show the first answer and are marked; jobs are found by their id only.
    # Words as in its report runs and payments, with one l in canceled.
    Contract(
        name="stripe-like",
        idempotency=Idempotency(required=False),
        lookup=Lookup(by=LookupBy.NONE, authoritative=False),
        create_answer=CreateAnswer.OK_200,
        cancel=Cancel(method=CancelMethod.POST, effect=CancelEffect.CONFIRMED, repeatable=False),
        status=Status(
            retry_after=RetryAfter.NONE,
            progress=False,
            not_found_grace_s=0,
            words=StateWords(queued="pending", running="processing", cancelling="canceling", cancelled="canceled"),
        ),
        result=Result(kind=ResultKind.INLINE, checksum=False, size=False),
        webhooks=Webhooks(enabled=True, progress_events=True),
    ),
    # AIP-155: request_id in the body, a duplicate gets the current state. AIP-151: cancel is best effort.
    # AIP-216: states in capitals.
    Contract(
        name="aip-like",
        idempotency=Idempotency(
            mechanism=Mechanism.BODY_FIELD,
            required=False,
            in_flight=InFlight.REPLAY,
            replays=Replays.CURRENT_STATE,
            replays_marked=False,
        ),
        lookup=Lookup(by=LookupBy.NONE, authoritative=False),
        create_answer=CreateAnswer.OK_200,
        cancel=Cancel(method=CancelMethod.POST, effect=CancelEffect.BEST_EFFORT, finished=FinishedCancel.OK_200),
        status=Status(
            retry_after=RetryAfter.NONE,
            words=StateWords(
                queued="PENDING",
                running="RUNNING",
                cancelling="CANCELLING",
                succeeded="SUCCEEDED",
                failed="FAILED",
                cancelled="CANCELLED",
            ),
        ),
        result=Result(kind=ResultKind.INLINE, checksum=False, size=False),
    ),
    # 202 with a status URL, an operation id of the client's choice, integer Retry-After while unfinished.
    # Words of its long-running operations; the one for a cancel under way is each service's own.
    Contract(
        name="azure-like",
        idempotency=Idempotency(required=False, replays=Replays.CURRENT_STATE, replays_marked=False),
        lookup=Lookup(by=LookupBy.OPERATION_ID),
        cancel=Cancel(effect=CancelEffect.ACCEPTED_ONLY, finished=FinishedCancel.OK_200),
        status=Status(
            words=StateWords(
                queued="NotStarted",
                running="Running",
                cancelling="Canceling",
                succeeded="Succeeded",
                failed="Failed",
                cancelled="Canceled",
            )
        ),
        result=Result(kind=ResultKind.SIGNED_URL),
    ),
    # Every promise a client would like to lean on is missing or half kept.
    Contract(
        name="careless",
        idempotency=Idempotency(
            required=False, other_body=OtherBody.REPLAY_OLD, in_flight=InFlight.REPLAY, replays_marked=False
        ),
        lookup=Lookup(authoritative=False, lag_s=5),
        create_answer=CreateAnswer.OK_200,
        cancel=Cancel(effect=CancelEffect.BEST_EFFORT, finished=FinishedCancel.OK_200),
        status=Status(retry_after=RetryAfter.NONE),
        result=Result(kind=ResultKind.ONE_TIME, checksum=False, size=False, record_count=False),
    ),
    # Nothing recognises a create that comes again, and nothing finds a job whose id was lost.
    Contract(
        name="no-idempotency",
        idempotency=Idempotency(mechanism=Mechanism.NONE),
        lookup=Lookup(by=LookupBy.NONE, authoritative=False),
    ),
    # A create that comes again makes another job, but a client can look before it leaps.
    Contract(name="lookup-only", idempotency=Idempotency(mechanism=Mechanism.NONE)),
)

PRESETS: Final[Mapping[str, Contract]] = MappingProxyType({contract.name: contract for contract in _ALL})
"""All of them by name."""


def preset(name: str) -> Contract:
    """Return the contract of that name.

    Raises:
        UnknownPreset: if there is none, with the names there are and the likeliest one.
    """
    if name in PRESETS:
        return PRESETS[name]
    near = difflib.get_close_matches(name, PRESETS, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise UnknownPreset(f"there is no contract {name!r}; one of {', '.join(PRESETS)}{hint}")
