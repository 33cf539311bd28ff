"""The reference client as a simulated subject, and the one place from which a deliberately broken client differs from
it.

``build`` makes the reference client. A broken client is ``build_with(host, workflow=Broken)``, where ``Broken`` is the
reference workflow with one method replaced, or with another part replaced through a keyword.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from fake_provider.outlook import comparable_s
from harness.subject import Claim, Client, Host, LeaseNote, Outlook, Recorded, Recording, Refused, WriteRefused
from reference_client.adapters.jobs import JobsAdapter
from reference_client.adapters.protocol import ProviderAdapter, RequestError
from reference_client.caller import Caller
from reference_client.client import ReferenceClient
from reference_client.commanding import CommandRefused
from reference_client.config import Terms, Timing
from reference_client.creating import OperationConflict
from reference_client.credentials import GivenCredential
from reference_client.lifecycle import LocalState
from reference_client.operation import Decision, HistoryEntry
from reference_client.outlook import outlook
from reference_client.stores.observed import ObservedStore
from reference_client.stores.protocol import Lease, OperationStore, StoreRefused, UnknownOperation
from reference_client.stores.sqlite import SQLiteStore
from reference_client.webhooks import EventIntake, Verifier
from reference_client.worker import Worker
from reference_client.workflow import Workflow

__all__ = ["ReferenceSubject", "build", "build_with", "recorded_note"]

_DATABASE: Final = "reference_client.sqlite"
_SUBMIT_TRIES: Final = 8
"""A store that refuses is tried again for a while, as a person or a program would."""


def recorded_note(entry: HistoryEntry) -> Recorded:
    """Return what the harness is told of a history entry that is durable."""
    return Recorded(
        operation=entry.operation_id,
        before=entry.before,
        after=entry.after,
        entry=entry.kind,
        actor=entry.actor,
        cause=entry.cause,
        reason=entry.reason,
        remote_job=entry.remote_job_id,
        remote_state=entry.remote_state,
    )


class _Notes:
    """Tells the harness of each write and lease."""

    def __init__(self, host: Host) -> None:
        self._note = host.note

    async def recording(self, entry: HistoryEntry) -> None:
        try:
            await self._note(Recording(operation=entry.operation_id, after=entry.after))
        except WriteRefused as refusal:
            raise StoreRefused(str(refusal)) from None

    async def recorded(self, entry: HistoryEntry) -> None:
        await self._note(recorded_note(entry))

    async def lease(self, lease: Lease, what: str, lasts_s: float) -> None:
        await self._note(LeaseNote(operation=lease.operation_id, what=what, fence=lease.fence, lasts_s=lasts_s))


class ReferenceSubject:
    """The reference client behind the protocol of :class:`harness.subject.Client`."""

    def __init__(self, host: Host, worker: Worker, intake: EventIntake) -> None:
        self._host = host
        self._worker = worker
        self._client = ReferenceClient(worker, target=host.base_url)
        self._intake = intake

    async def run(self) -> None:
        """Work, for as long as the worker lives."""
        await self._client.run()

    async def submit(self, operation: str, request: Mapping[str, Any]) -> None:
        try:
            await self._insist(lambda: self._client.submit(operation, request, authorised_by="the scenario"))
        except (OperationConflict, RequestError) as error:
            raise Refused(str(error)) from None

    async def cancel(self, operation: str, who: str, why: str) -> None:
        await self._order(lambda: self._client.cancel(operation, who=who, why=why))

    async def reconcile(self, operation: str, who: str, why: str) -> None:
        """Look again at an operation that rests."""
        await self._order(lambda: self._client.reconcile(operation, who=who, why=why))

    async def decide(self, operation: str, who: str, why: str, state: str, job: str | None) -> None:
        """Go on as a person decided."""
        decision = Decision(who=who, why=why, state=LocalState(state), remote_job_id=job)
        await self._order(lambda: self._client.decide(operation, decision))

    async def report(self) -> Sequence[Claim]:
        return [Claim(**msgspec.structs.asdict(each)) for each in await self._client.summaries()]

    async def webhook(self, headers: Mapping[str, str], body: bytes) -> int:
        """Take one delivery."""
        return await self._intake.take(headers, body)

    def outlook(self) -> Outlook:
        """What this worker will go on from: the records, the leases, what waits for them, and its own memory."""
        now = self._host.store_now()
        key_lifetime_s = self._worker.workflow.terms.idempotency.key_lifetime_s
        records, waiting = self._host.disk[_DATABASE].shelf()
        state: list[object] = []
        ends: dict[str, float] = {}
        for operation, owner, *times in records:
            record, deadlines = outlook(operation, now, key_lifetime_s=key_lifetime_s)
            due = [None if at is None else comparable_s(max(0.0, at - now)) for at in times]
            state.append((record, owner, due))
            ends |= {f"{operation.operation_id} {name}": in_s for name, in_s in deadlines.items()}
        return Outlook(state=(state, waiting, self._worker.memory()), ends=ends)

    async def stop(self) -> None:
        """End in good order."""
        self._client.stop()

    async def _order(self, order: Callable[[], Any]) -> None:
        try:
            await self._insist(order)
        except (UnknownOperation, CommandRefused) as error:
            raise Refused(str(error)) from None

    async def _insist(self, order: Callable[[], Any]) -> None:
        for tries in range(1, _SUBMIT_TRIES + 1):
            try:
                await order()
            except StoreRefused as error:
                if tries == _SUBMIT_TRIES:
                    raise Refused(str(error)) from None
                await self._host.clock.sleep(self._host.timing["poll_first_s"])
            else:
                return


def build(host: Host) -> Client:
    """Build the reference client for one worker of a simulation."""
    return build_with(host)


def build_with(
    host: Host,
    *,
    workflow: type[Workflow] = Workflow,
    worker: type[Worker] = Worker,
    adapter: Callable[[Terms], ProviderAdapter] = JobsAdapter,
    verifier: type[Verifier] = Verifier,
    store: Callable[[OperationStore], OperationStore] = lambda store: store,
    timing: Callable[[Timing], Timing] = lambda timing: timing,
    terms: Callable[[Terms], Terms] = lambda terms: terms,
) -> ReferenceSubject:
    """Build the reference client with some of its parts replaced.

    Args:
        host: what the worker is given.
        workflow: decides, and applies answers.
        worker: the shell around it.
        adapter: reads and writes the wire format.
        verifier: checks webhooks.
        store: wraps the store, under the notes that the harness is given.
        timing: changes the clocks that the host states.
        terms: changes the promises that the client believes.
    """
    believed = terms(Terms.read(host.contract))
    clocks = timing(msgspec.convert(dict(host.timing), Timing))
    disk = host.disk
    if _DATABASE not in disk:
        disk[_DATABASE] = SQLiteStore(":memory:", now=host.store_now)
    observed = ObservedStore(store(disk[_DATABASE]), _Notes(host))
    flow = workflow(adapter(believed), terms=believed, timing=clocks, random=host.random)
    caller = Caller(
        base_url=host.base_url,
        credentials=GivenCredential(host.authorization),
        timing=clocks,
        transport=host.transport,
    )
    running = worker(host.worker, store=observed, workflow=flow, caller=caller, clock=host.clock, timing=clocks)
    intake = EventIntake(
        verifier=verifier(host.webhook_secrets),
        store=observed,
        workflow=flow,
        clock=host.clock,
        actor=host.worker,
        wake=running.wake,
    )
    return ReferenceSubject(host, running, intake)
