"""Webhook events, their signatures and the schedule of their deliveries. Pure: nothing is sent from here.

After Standard Webhooks: ``webhook-id`` is the same over all attempts, ``webhook-timestamp`` is new for each, and
``webhook-signature`` holds one ``v1,`` signature per secret in use. Only 2xx is success; 410 ends all deliveries.
"""

from base64 import b64encode
from collections.abc import Sequence
from datetime import UTC, datetime
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Final

import msgspec
from standardwebhooks import Webhook

from fake_provider.contract import Webhooks
from fake_provider.outlook import comparable_s

if TYPE_CHECKING:  # handed in, never made here
    from random import Random

__all__ = ["MAX_HELD", "Attempt", "Event", "Outbox", "Pending", "sign"]

MAX_HELD: Final = 100_000
"""Deliveries waiting at one time: as many as jobs. Past that the newest are dropped, as a full queue would."""

_GONE: Final = 410
_SIGNATURE: Final = "webhook-signature"


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """Something a client is told. ``genuine`` is False where it is signed with a secret the client never got."""

    id: str
    type: str
    job: str
    operation: str | None
    body: bytes
    genuine: bool = True


class Pending(msgspec.Struct, kw_only=True):
    """One delivery that will be attempted, and what faults have made of it."""

    event: Event
    attempt: int = 1
    retried: bool = True  # False: an extra copy, of which nobody waits for an answer
    skew_s: float = 0  # added to the timestamp
    rotated: bool = False  # signed with a newer secret first, as while secrets are being changed
    frozen: "Attempt | None" = None  # sent again byte for byte
    signed: bool = True  # False: without the header that would hold the signature
    exempt: bool = False  # no fault strikes it (once more)
    lost: bool = False  # it leaves, and never arrives


class Attempt(msgspec.Struct, kw_only=True):
    """One delivery as it leaves. Whoever delivers it says in ``worker`` to whom it went, if that is known."""

    delivery: int
    event: str
    type: str
    job: str
    operation: str | None
    attempt: int
    genuine: bool
    headers: dict[str, str]
    body: bytes
    worker: str | None = None


def sign(event_id: str, body: bytes, now: float, secrets: Sequence[str]) -> dict[str, str]:
    """Return the three headers of Standard Webhooks.

    Args:
        event_id: the event's id, the same over retries.
        body: the exact bytes to be sent, UTF-8.
        now: seconds since the epoch; whole seconds are signed.
        secrets: each of them signs, in this order; ``whsec_`` and base64.
    """
    at, text = datetime.fromtimestamp(int(now), UTC), body.decode()
    return {
        "content-type": "application/json",
        "webhook-id": event_id,
        "webhook-timestamp": str(int(now)),
        _SIGNATURE: " ".join(Webhook(secret).sign(event_id, at, text) for secret in secrets),
    }


class Outbox:
    """The deliveries to come, by the time they are due."""

    def __init__(self, promised: Webhooks, *, secrets: Sequence[str], random: "Random") -> None:
        """Args:
        secrets: what the client was given, newest first; every one signs. May be empty only if webhooks are off.
        """
        if promised.enabled and not secrets:
            raise ValueError("the contract has webhooks, so at least one webhook secret is needed to sign them")
        self._promised = promised
        self._secrets = tuple(secrets)
        self._random = random
        self._stranger = "whsec_" + b64encode(random.randbytes(24)).decode()
        self._newer = "whsec_" + b64encode(random.randbytes(24)).decode()
        self._due: list[tuple[float, int, Pending]] = []
        self._order = count()
        self._deliveries = count(1)
        self.disabled = False

    @property
    def offered(self) -> bool:
        """Whether there is anyone to tell, and a secret to sign with."""
        return self._promised.enabled and bool(self._secrets)

    def event_id(self) -> str:
        return f"evt_{self._random.getrandbits(64):016x}"

    def add(self, pending: Pending, due: float) -> None:
        """Have one delivery attempted at ``due``."""
        if not self.disabled and len(self._due) < MAX_HELD:
            heappush(self._due, (due, next(self._order), pending))

    def next_due(self) -> float | None:
        return self._due[0][0] if self._due else None

    def take(self, now: float) -> Pending | None:
        """Return the next delivery due at ``now``, or None."""
        return heappop(self._due)[2] if self._due and self._due[0][0] <= now else None

    def fingerprint(self) -> object:
        """Return what is still to be delivered, and when, in types of JSON; without ids, which are random."""
        return [
            (due, each.event.type, each.event.operation, each.event.genuine, each.attempt, each.skew_s, each.signed)
            for due, _, each in sorted(self._due)
        ]

    def outlook(self, now: float) -> object:
        """Return what is still to be delivered, in types of JSON, and in how many seconds."""
        return [
            {
                "in_s": comparable_s(max(0.0, due - now)),
                "event": (each.event.id, each.event.type, each.event.operation, each.event.genuine),
                "delivery": (
                    each.attempt,
                    each.skew_s,
                    each.rotated,
                    each.signed,
                    each.exempt,
                    each.lost,
                    each.frozen is None,
                ),
            }
            for due, _, each in sorted(self._due, key=lambda item: item[:2])
        ]

    def prepare(self, pending: Pending, now: float) -> Attempt:
        """Sign one delivery, as it leaves at ``now``."""
        event, number = pending.event, next(self._deliveries)
        if pending.frozen is not None:
            return msgspec.structs.replace(pending.frozen, delivery=number, attempt=pending.attempt, worker=None)
        secrets = self._secrets if event.genuine else (self._stranger,)
        if pending.rotated:
            secrets = (self._newer, *secrets)
        headers = sign(event.id, event.body, now + pending.skew_s, secrets)
        if not pending.signed:
            del headers[_SIGNATURE]
        return Attempt(
            delivery=number,
            event=event.id,
            type=event.type,
            job=event.job,
            operation=event.operation,
            attempt=pending.attempt,
            genuine=event.genuine,
            headers=headers,
            body=event.body,
        )

    def answered(self, pending: Pending, status: int | None, now: float) -> None:
        """Take note of what came of an attempt, and plan the next where one is owed."""
        if status == _GONE:
            self.disabled = True
            self._due.clear()
        elif pending.retried and not (status is not None and 200 <= status < 300):
            delays = self._promised.retry_delays_s
            if pending.attempt <= len(delays):
                again = Pending(event=pending.event, attempt=pending.attempt + 1)
                self.add(again, now + delays[pending.attempt - 1])
