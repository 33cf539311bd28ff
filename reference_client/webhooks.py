"""Webhooks after Standard Webhooks: verified, read, de-duplicated, and turned into a reason to look sooner (W4.7).

The core is without I/O: :class:`Verifier` checks one delivery. :class:`EventIntake` keeps what was verified. The
socket is in ``reference_client.receiver``. Rejections are counted by reason; nothing of a rejected payload is kept.
"""

import base64
import binascii
import hashlib
import hmac
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from reference_client.adapters.protocol import ProviderAdapter
from reference_client.clock import Clock
from reference_client.operation import EventNotice, HistoryEntry, Operation
from reference_client.stores.protocol import OperationStore, StoreRefused
from reference_client.workflow import Workflow

__all__ = [
    "BODY_LIMIT_BYTES",
    "TOLERANCE_S",
    "EventIntake",
    "Verified",
    "Verifier",
    "WebhookRejected",
    "WebhookSecretError",
    "read_notice",
]

_LOG: Final = logging.getLogger(__name__)

TOLERANCE_S: Final = 300.0
"""On both sides of now: a timestamp from the future is as wrong as an old one. (Standard Webhooks)"""

BODY_LIMIT_BYTES: Final = 1 << 20
"""An event about a job is a few hundred bytes; whoever sends more than this is not its provider."""

_ID_LIMIT: Final = 256
_PREFIX: Final = "whsec_"


class WebhookSecretError(ValueError):
    """A secret that is none. The message does not repeat it."""


class WebhookRejected(Exception):
    """A delivery that is not believed. ``reason`` is a short word; ``status`` answers the delivery."""

    def __init__(self, reason: str, status: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status


class Verified(msgspec.Struct, frozen=True):
    """A delivery that came from whoever holds a secret, in time. It is not a fact about a job yet."""

    event_id: str
    body: bytes


class Verifier:
    """Checks deliveries against one secret, or two while they are being rotated.

    ``standardwebhooks.Webhook.verify`` is not used: it asks the machine for the time, and one malformed signature in
    the list makes it fail where the standard says to skip it.

    Raises:
        WebhookSecretError: for a secret that is not ``whsec_`` and base64.
    """

    def __init__(self, secrets: Sequence[str]) -> None:
        self._keys = tuple(_key(secret) for secret in secrets)

    def verify(self, headers: Mapping[str, str], body: bytes, *, now: float) -> Verified:
        """Return the delivery if it is to be believed. Header names may have any case.

        Raises:
            WebhookRejected: otherwise.
        """
        named = {name.lower(): value for name, value in headers.items()}
        if len(body) > BODY_LIMIT_BYTES:
            raise WebhookRejected("body_too_large", 413)
        event_id = named.get("webhook-id", "")
        stamp = named.get("webhook-timestamp", "")
        if not event_id or len(event_id) > _ID_LIMIT or not event_id.isascii() or not event_id.isprintable():
            raise WebhookRejected("no_usable_id", 400)
        if not (stamp.isascii() and stamp.isdigit() and len(stamp) < 20):
            raise WebhookRejected("no_usable_timestamp", 400)
        if not self.is_signed(event_id, stamp, body, named.get("webhook-signature", "")):
            raise WebhookRejected("no_valid_signature", 401)
        if abs(now - int(stamp)) > TOLERANCE_S:
            raise WebhookRejected("outside_tolerance", 400)
        return Verified(event_id, body)

    def is_signed(self, event_id: str, stamp: str, body: bytes, signatures: str) -> bool:
        """Whether any signature in the list was made with any of the secrets. Malformed entries are skipped."""
        message = f"{event_id}.{stamp}.".encode() + body
        expected = [hmac.new(key, message, hashlib.sha256).digest() for key in self._keys]
        for signature in signatures.split(" "):
            version, _, encoded = signature.partition(",")
            if version != "v1":
                continue
            try:
                given = base64.b64decode(encoded, validate=True)
            except (binascii.Error, ValueError):
                continue
            if any(hmac.compare_digest(given, each) for each in expected):
                return True
        return False


def _key(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix(_PREFIX) + "==", validate=False)
    except (binascii.Error, ValueError):
        key = b""
    if not secret.startswith(_PREFIX) or not key:
        raise WebhookSecretError("a webhook secret is whsec_ followed by base64")
    return key


def read_notice(
    headers: Mapping[str, str], body: bytes, *, verifier: Verifier, adapter: ProviderAdapter, now: float
) -> EventNotice | None:
    """Return what a delivery tells of a job; None if it is genuine and about none.

    Raises:
        WebhookRejected: it is not to be believed.
    """
    verified = verifier.verify(headers, body, now=now)
    event = adapter.read_event(verified.body)
    if event is None:
        return None
    return EventNotice(
        event_id=verified.event_id,
        type=event.type,
        remote_job_id=event.job.job_id,
        remote_state=event.job.state,
    )


class EventIntake:
    """Takes deliveries for one store.

    Args:
        wake: called when an operation became due by an event.
    """

    def __init__(
        self,
        *,
        verifier: Verifier,
        store: OperationStore,
        workflow: Workflow,
        clock: Clock,
        actor: str,
        wake: Callable[[], None],
    ) -> None:
        self._verifier = verifier
        self._store = store
        self._workflow = workflow
        self._clock = clock
        self._actor = actor
        self._wake = wake
        self.rejected: Counter[str] = Counter()

    async def take(self, headers: Mapping[str, str], body: bytes) -> int:
        """Take one delivery; return the HTTP status to answer it with.

        2xx once it is durable or was before; 503 when the store refuses, so that the provider tries again.
        """
        try:
            notice = read_notice(
                headers, body, verifier=self._verifier, adapter=self._workflow.adapter, now=self._clock.now()
            )
        except WebhookRejected as rejection:
            self.rejected[rejection.reason] += 1
            _LOG.info("webhook rejected: %s (%d so far)", rejection.reason, self.rejected[rejection.reason])
            return rejection.status
        if notice is None:
            return 204  # nothing to keep

        def entry(operation: Operation, now: float) -> HistoryEntry:
            return self._workflow.given(operation, notice, actor=self._actor, now=now)

        try:
            told = await self._store.take_event(notice, entry)
        except StoreRefused:
            return 503
        if told is not None:
            self._wake()
        return 204
