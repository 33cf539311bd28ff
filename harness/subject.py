"""The protocol a client under test meets: what it is given, what it is asked, what it may say.

There are two forms with one meaning. A *simulated* client is async Python: a factory ``build(host) -> Client``,
called once for each start of a worker. A *process* client speaks JSON lines (``harness.subjects.lines``). Both are
told to submit and cancel, both are asked for claims, both may note what they record as they do it. A client that
notes nothing is judged from the wire and from its claims. What a patched client meets is in ``harness.patching``; a
one-shot command meets none of it, and claims by how it ends (``harness.subjects.endings``).
"""

from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import msgspec

if TYPE_CHECKING:  # what a host is given is made elsewhere
    from random import Random

    import httpx2

__all__ = [
    "REST_STATES",
    "STATES",
    "Candid",
    "Capability",
    "Claim",
    "Client",
    "Factory",
    "Host",
    "HostClock",
    "LeaseNote",
    "Note",
    "Outlook",
    "Recorded",
    "Recording",
    "Refused",
    "WebhookReceiver",
    "WriteRefused",
]

FINAL_STATES = frozenset({"succeeded", "failed", "cancelled", "withdrawn"})
REST_STATES = FINAL_STATES | {
    "result_timed_out",
    "cancellation_unconfirmed",
    "result_unavailable",
    "result_validation_failed",
    "human_decision_required",
}
STATES = REST_STATES | {
    "create_pending",
    "create_unknown",
    "reconciliation",
    "accepted",
    "observing",
    "cancel_requested",
    "cancelling",
    "result_collecting",
}
"""The local states of an operation, in which every client makes its claims (W5)."""


Capability = Literal["cancel", "checkpoints", "decide", "reconcile", "webhooks", "workers"]
"""What a client can do beyond the least: be told to cancel, wait at its durable writes, be told what a person decided,
be told to look again, take webhooks, and share one store with other workers.
"""


class Claim(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a client says of one operation. ``state`` is one of :data:`STATES`."""

    operation: str
    state: str
    remote_job: str | None = None
    result_sha256: str | None = None  # hex, of the result body it holds
    records: int | None = None
    failed_items: int | None = None
    explanation: str | None = None

    @property
    def at_rest(self) -> bool:
        """Nothing more happens to the operation until someone acts."""
        return self.state in REST_STATES


class Recording(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="note", tag="recording", forbid_unknown_fields=True
):
    """About to make a history entry durable. A fault at ``store:received`` strikes here."""

    operation: str
    after: str


class Recorded(msgspec.Struct, frozen=True, kw_only=True, tag_field="note", tag="recorded", forbid_unknown_fields=True):
    """A history entry is durable (W5.3). A fault at ``store:committed`` strikes here, before the client goes on."""

    operation: str
    before: str | None
    after: str
    entry: str  # "transition", "intent", "outcome", "note"
    actor: str
    cause: str
    reason: str
    remote_job: str | None = None
    remote_state: str | None = None


class LeaseNote(msgspec.Struct, frozen=True, kw_only=True, tag_field="note", tag="lease", forbid_unknown_fields=True):
    """What happened to this worker's lease on an operation: "taken", "renewed", "released", "lost"."""

    operation: str
    what: str
    fence: int
    lasts_s: float = 0.0


Note = Recording | Recorded | LeaseNote


class Refused(Exception):
    """Raised by ``submit`` and ``cancel`` of a client that will not do it; the message is the reason, for a person."""


class WriteRefused(Exception):
    """Raised out of ``Host.note(Recording(…))`` when a fault makes the durable store refuse this write."""


class HostClock(Protocol):
    """The host's time of day, which may be wrong and may be set, and the one way to wait, which goes by no date."""

    def now(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Host:
    """What one worker of a simulated client is given: its machine, the network and the terms.

    ``disk`` is shared by all workers of a run and survives their deaths, as a disk would; all else dies with the
    worker. ``store_now`` is the time of day where the disk is, as a database server would tell it: the same for all
    workers, and right, whatever their own clocks say.
    """

    worker: str
    base_url: str
    transport: "httpx2.AsyncBaseTransport"
    clock: HostClock
    random: "Random"
    disk: MutableMapping[str, Any]
    store_now: Callable[[], float]  # seconds since the Unix epoch
    contract: Mapping[str, Any]  # a fake_provider.contract.Contract as JSON
    timing: Mapping[str, float]  # a scenarios.model.Timing as JSON
    authorization: str  # the Authorization header value, for ``base_url``'s origin only
    webhook_secrets: Sequence[str]  # "whsec_…", newest first
    note: Callable[[Note], Awaitable[None]]


@runtime_checkable
class Client(Protocol):
    """One running worker of the client under test.

    ``submit`` and ``cancel`` may return at once or see the operation through; the harness does not wait for them.
    They raise :class:`Refused` for what the client will not do, such as another request under a known operation id.
    Optional methods take what people do about an operation at rest: ``async reconcile(operation, who, why)`` looks
    again, ``async decide(operation, who, why, state, job)`` goes on from a local state that a person has chosen, with
    the job that the person found. An optional ``async run()`` is started with the worker, and an optional
    ``async stop()`` asks it to end in good order.
    """

    async def submit(self, operation: str, request: Mapping[str, Any]) -> None: ...

    async def cancel(self, operation: str, who: str, why: str) -> None: ...

    async def report(self) -> Sequence[Claim]: ...


@runtime_checkable
class WebhookReceiver(Protocol):
    """A client that takes webhooks."""

    async def webhook(self, headers: Mapping[str, str], body: bytes) -> int:
        """Take one delivery; return the HTTP status to answer it with."""
        ...


class Outlook(msgspec.Struct, frozen=True, kw_only=True):
    """What something will go on from. Two moments that agree in it are followed by the same, if the same happens then.

    ``state``: all that decides what is done next, in types of JSON: what is kept and what only the process knows,
    without what is past. Times in it are in seconds from now. Ids of 16 hexadecimal digits and more are compared by
    where they come up again, not as they are.
    ``ends``: what the clock alone will change, such as deadlines, by name: in so many seconds, all of them to come.
    """

    state: Any
    ends: Mapping[str, float]


@runtime_checkable
class Candid(Protocol):
    """A client that says what it will go on from, so that a sweep need not try a fault twice in the same situation."""

    def outlook(self) -> Outlook: ...


Factory = Callable[[Host], Client]
