"""The reference client without HTTP, without an event loop and without a disk: for the model, which takes it apart.

:func:`burst` is ``reference_client.worker.Worker`` word for word, as a generator: it yields each thing that is done at
one instant (claim, write, renew, call), and is sent what came of it. Whoever drives it may stop between any two of
them, for a while or for good. :class:`Shelf` is a store of one operation with the promises of
``reference_client.stores.protocol``.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from random import Random
from typing import Any, Final

import msgspec

from fake_provider import wire
from harness.subject import Claim, LeaseNote, Note
from harness.subjects.reference import recorded_note
from reference_client.adapters.jobs import JobsAdapter
from reference_client.adapters.protocol import Answer, NoAnswer
from reference_client.client import summarise
from reference_client.config import Terms, Timing
from reference_client.operation import Command, EventNotice, Operation, Stop, span_id
from reference_client.steps import Step
from reference_client.stores.alike import finds_job, lost
from reference_client.stores.protocol import Lease, LeaseLost
from reference_client.webhooks import Verifier, WebhookRejected, read_notice
from reference_client.workflow import Collect, Rest, Send, Settle, Wait, Workflow

__all__ = ["Burst", "Calling", "Claiming", "Doing", "Leaving", "PureReference", "Shelf", "Writing"]


class Claiming(msgspec.Struct, frozen=True):
    """Take the operation, if it is due and free."""


class Writing(msgspec.Struct, frozen=True):
    """Make a step durable under the lease, which then lasts at least so long."""

    lease: Lease
    step: Step
    lasts_s: float = 0.0
    takes_command: bool = False  # the step takes up the command that has waited longest


class Leaving(msgspec.Struct, frozen=True):
    """Give the lease back, the last step having been written."""

    lease: Lease
    due_at: float | None


class Calling(msgspec.Struct, frozen=True):
    """Look at the lease once more, and make the call in flight."""

    lease: Lease
    operation: Operation
    endpoint: str
    request: wire.Request


Doing = Claiming | Writing | Leaving | Calling
Burst = Generator[Doing, Any, None]

_SAFE: Final = {"accept": "application/json"}


class Shelf:
    """The durable record of one operation, and its lease."""

    def __init__(self, operation: Operation, now: float) -> None:
        self.operation = operation
        self.owner: str | None = None
        self.fence = 0
        self.until = 0.0
        self.wake_at: float | None = now
        self.waiting: tuple[Command, ...] = ()  # commands that were not taken up yet
        self.events: dict[str, EventNotice] = {}  # all that were taken, by id

    def is_due(self, now: float) -> bool:
        return self.wake_at is not None and self.wake_at <= now

    def give(self, command: Command, now: float) -> None:
        """Keep a command for whoever has the lease next."""
        self.waiting += (command,)
        if self.owner is None:
            self.wake_at = now

    def take_event(self, notice: EventNotice, now: float) -> bool:
        """Keep an event; return whether it tells the operation something. Before it has its job, none does."""
        is_new = self.events.setdefault(notice.event_id, notice) is notice
        tells = is_new and notice.remote_job_id == self.operation.remote_job_id
        if tells:
            self.give(notice, now)
        return tells

    def claim(self, owner: str, now: float, lease_s: float) -> tuple[Lease, Operation, tuple[Command, ...]]:
        """Take the lease; :meth:`is_due` said yes."""
        self.owner, self.fence, self.until = owner, self.fence + 1, now + lease_s
        self.wake_at = self.until
        return self._lease(), self.operation, self.waiting

    def renew(self, lease: Lease, now: float, lasts_s: float) -> Lease:
        """Raises: LeaseLost."""
        self._check(lease, now)
        self.until = self.wake_at = max(self.until, now + lasts_s)
        return self._lease()

    def write(self, doing: Writing, now: float) -> Lease:
        """Raises: LeaseLost."""
        renewed = self.renew(doing.lease, now, doing.lasts_s)
        if doing.step.operation.version != self.operation.version + 1:
            raise lost(doing.lease)
        self.operation = doing.step.operation
        self.waiting = self.waiting[doing.takes_command :]
        if finds_job(doing.step):
            job = self.operation.remote_job_id
            self.waiting += tuple(each for each in self.events.values() if each.remote_job_id == job)
        return renewed

    def leave(self, lease: Lease, now: float, due_at: float | None) -> None:
        """Raises: LeaseLost."""
        self._check(lease, now)
        self.owner, self.until, self.wake_at = None, 0.0, now if self.waiting else due_at

    def _check(self, lease: Lease, now: float) -> None:
        if (self.owner, self.fence) != (lease.owner, lease.fence) or self.until <= now:
            raise lost(lease)

    def _lease(self) -> Lease:
        assert self.owner is not None
        return Lease(operation_id=self.operation.operation_id, owner=self.owner, fence=self.fence, until=self.until)

    def fingerprint(self) -> bytes:
        """All of it, as bytes."""
        state = (self.operation, self.owner, self.fence, self.until, self.wake_at, self.waiting, list(self.events))
        return msgspec.json.encode(state)


class PureReference:
    """The client: its workflow, its shelf, and what it says of itself."""

    def __init__(
        self,
        *,
        contract: Mapping[str, Any],
        timing: Mapping[str, float],
        base_url: str,
        authorization: str,
        webhook_secrets: Sequence[str],
        note: Callable[[str, Note], None],
    ) -> None:
        """Args:
        webhook_secrets: by which deliveries are signed.
        note: told what a worker says, as the harness would be.
        """
        self._timing = msgspec.convert(dict(timing), Timing)
        terms = Terms.read(contract)
        self._workflow = Workflow(JobsAdapter(terms), terms=terms, timing=self._timing, random=Random(0))
        self._base_url = base_url
        self._authorization = authorization
        self._verifier = Verifier(webhook_secrets)
        self._note = note
        self._shelf: Shelf | None = None

    @property
    def shelf(self) -> Shelf:
        assert self._shelf is not None, "nothing was submitted"
        return self._shelf

    @property
    def request_timeout_s(self) -> float:
        return self._timing.request_timeout_s

    def submit(self, operation: str, request: Mapping[str, Any], *, worker: str, now: float) -> None:
        """Put the operation on the shelf."""
        step = self._workflow.open(
            operation, request, target=self._base_url, authorised_by="the model", actor=worker, now=now
        )
        self._shelf = Shelf(step.operation, now)
        self._say(worker, step)

    def cancel(self, *, who: str, why: str, worker: str, now: float) -> None:
        """Keep a stop command, given to one of the workers (W6.1)."""
        command = Stop(who=who, why=why)
        self._workflow.check_command(self.shelf.operation, command)
        entry = self._workflow.given(self.shelf.operation, command, actor=worker, now=now)
        self.shelf.give(command, now)
        self._note(worker, recorded_note(entry))

    def webhook(self, headers: Mapping[str, str], body: bytes, *, worker: str, now: float) -> int:
        """Take one delivery; return the status that answers it (W4.7)."""
        adapter = self._workflow.adapter
        try:
            notice = read_notice(headers, body, verifier=self._verifier, adapter=adapter, now=now)
        except WebhookRejected as rejection:
            return rejection.status
        if notice is not None and self.shelf.take_event(notice, now):
            entry = self._workflow.given(self.shelf.operation, notice, actor=worker, now=now)
            self._note(worker, recorded_note(entry))
        return 204

    def claim(self) -> Claim:
        """What the client says of the operation."""
        return Claim(**msgspec.structs.asdict(summarise(self.shelf.operation)))

    # -- a worker

    def burst(self, worker: str, now: Callable[[], float]) -> Burst:
        """All that a worker does from one claim on. Ends quietly when the lease is gone."""
        workflow = self._workflow
        lease, operation, commands = yield Claiming()
        if operation.in_flight is not None:
            lease = yield Writing(lease, step := workflow.interrupted(operation, actor=worker, now=now()))
            operation = step.operation
        for command in commands:
            step = workflow.take_up(operation, command, actor=worker, now=now())
            lease = yield Writing(lease, step, takes_command=True)
            operation = step.operation
        last: Step | None = None
        while not isinstance(action := workflow.next_action(operation, at := now()), Wait | Rest):
            if last is not None:
                lease = yield Writing(lease, last)
            if isinstance(action, Settle):
                last = workflow.settle(operation, action, actor=worker, now=at)
            elif isinstance(action, Collect):
                last = workflow.collect(operation, actor=worker, now=at)
            else:
                lease, operation = yield from self._intend(worker, lease, operation, action, at)
                answer: Answer | NoAnswer = yield Calling(lease, operation, str(action.call), self.request(operation))
                answer = msgspec.structs.replace(answer, received_at=now())
                last = workflow.conclude(operation, answer, actor=worker, now=answer.received_at)
            operation = last.operation
        if last is not None:
            lease = yield Writing(lease, last)
        yield Leaving(lease, action.until if isinstance(action, Wait) else None)

    def _intend(
        self, worker: str, lease: Lease, operation: Operation, action: Send, now: float
    ) -> Generator[Doing, Lease, tuple[Lease, Operation]]:
        intent = self._workflow.begin(operation, action, worker=worker, fence=lease.fence, now=now)
        lease = yield Writing(lease, intent, self._timing.call_lease_s)
        return lease, intent.operation

    def request(self, operation: Operation) -> wire.Request:
        """The request of the call in flight, as it goes out."""
        asked = self._workflow.request(operation)
        path, _, query = asked.path.partition("?")
        traceparent = f"00-{operation.trace_id}-{span_id(operation.trace_id, operation.calls)}-01"
        headers = {**_SAFE, **{name.lower(): value for name, value in asked.headers.items()}}
        return wire.Request(
            method=asked.method,
            path=path,
            query=query,
            headers={**headers, "traceparent": traceparent, "authorization": self._authorization},
            body=asked.body or b"",
            base_url=self._base_url,
        )

    # -- what is done at one instant; where the lease is gone this is said, and nothing is done

    def claimed(self, worker: str, now: float) -> tuple[Lease, Operation, tuple[Command, ...]]:
        """Do a :class:`Claiming`."""
        lease, operation, commands = self.shelf.claim(worker, now, self._timing.lease_s)
        self._lease(worker, lease, "taken", lease.until - now)
        return lease, operation, commands

    def written(self, worker: str, doing: Writing, now: float) -> Lease | None:
        """Do a :class:`Writing`."""
        lease = self._held(worker, doing.lease, lambda: self.shelf.write(doing, now))
        if lease is None:
            return None
        if lease.until != doing.lease.until:
            self._lease(worker, lease, "renewed", lease.until - now)
        self._say(worker, doing.step)
        return lease

    def may_call(self, worker: str, doing: Calling, now: float) -> bool:
        """Do the first half of a :class:`Calling`: look at the lease once more."""
        lasts_s = self._timing.call_lease_s
        lease = self._held(worker, doing.lease, lambda: self.shelf.renew(doing.lease, now, lasts_s))
        if lease is not None and lease.until != doing.lease.until:
            self._lease(worker, lease, "renewed", lease.until - now)
        return lease is not None

    def left(self, worker: str, doing: Leaving, now: float) -> None:
        """Do a :class:`Leaving`."""
        if self._held(worker, doing.lease, lambda: self.shelf.renew(doing.lease, now, 0.0)) is not None:
            self._lease(worker, doing.lease, "released", 0.0)
            self.shelf.leave(doing.lease, now, doing.due_at)

    def answer(self, doing: Calling, answer: wire.Answer) -> Answer:
        """An answer as the client's HTTP library would hand it over."""
        headers = {name.lower(): value for name, value in answer.headers}
        url = doing.request.base_url + doing.request.path
        return Answer(url=url, status=answer.status, headers=headers, body=answer.body, received_at=0.0)

    def no_answer(self, error: str) -> NoAnswer:
        """What it would hand over instead: "timeout" or "reset"."""
        return NoAnswer(error=error, detail=error, received_at=0.0)

    def _held(self, worker: str, lease: Lease, do: Callable[[], Lease]) -> Lease | None:
        try:
            return do()
        except LeaseLost:
            self._lease(worker, lease, "lost", 0.0)
            return None

    def _lease(self, worker: str, lease: Lease, what: str, lasts_s: float) -> None:
        self._note(worker, LeaseNote(operation=lease.operation_id, what=what, fence=lease.fence, lasts_s=lasts_s))

    def _say(self, worker: str, step: Step) -> None:
        for entry in step.entries:
            self._note(worker, recorded_note(entry))
