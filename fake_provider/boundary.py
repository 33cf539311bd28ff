"""One exchange on its way through network, dialect, faults and provider, and one webhook on its way out.

Sans-IO: an exchange is a generator. It yields *effects* for a shell to bring about (wait, send this answer in that
manner, do something to the client's host) and is sent the time after each. What happened goes out as facts. The shells
are ``fake_provider.engine`` with ``transport`` and ``server``.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Final

import msgspec

from fake_provider.books import LedgerLine
from fake_provider.calls import Call, Create, Fetch, Problem, Refused, Served
from fake_provider.contract import Contract
from fake_provider.custody import Custody
from fake_provider.dialects import DIALECTS
from fake_provider.effects import (
    Begin,
    Copy,
    Exchange,
    Send,
    StoreFate,
    Wait,
    WaitFor,
    host_effects,
)
from fake_provider.facts import (
    AnswerEnded,
    CommitPoint,
    Endpoint,
    Fate,
    Record,
    RequestSent,
    ResultRead,
    credential_digest,
)
from fake_provider.faults import Fault, FaultPlan
from fake_provider.faults.course import Course
from fake_provider.faults.plan import Strikes
from fake_provider.job import Job
from fake_provider.mailroom import Mailroom
from fake_provider.provider import Provider
from fake_provider.webhooks import Outbox
from fake_provider.wire import Answer, Request
from fake_provider.work import Work

if TYPE_CHECKING:  # handed in, never made here
    from random import Random

__all__ = ["Boundary"]

_TRACEPARENT: Final = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?")
_P = CommitPoint


_NOTHING: Final = StoreFate()
_FINGERPRINT: Final = msgspec.json.Encoder()


class Boundary:
    """The provider with everything between it and its clients."""

    def __init__(
        self,
        contract: Contract,
        *,
        base_url: str,
        random: "Random",
        record: Record,
        dialect: str = "jobs",
        work: Mapping[str, Work] | None = None,
        faults: Iterable[Fault] = (),
        webhook_secrets: Sequence[str] = (),
        authorization: str | None = None,
    ) -> None:
        """Args:
        base_url: where the provider is, for URLs in answers and events; no slash at the end.
        random: makes every id, so that equal seeds give equal runs.
        record: takes each fact as it happens.
        work: what the jobs of an operation do, by operation; ``"default"`` for the others.
        webhook_secrets: "whsec_…", newest first; needed if the contract has webhooks.
        authorization: the Authorization header that the clients were given, if that is known: its secret is looked for
            wherever else a request might bear it.
        """
        if dialect not in DIALECTS:
            raise ValueError(f"there is no dialect {dialect!r}; one of {', '.join(DIALECTS)}")
        self.contract = contract
        self.dialect = DIALECTS[dialect]
        beyond = self.dialect.cannot_promise(contract)
        if beyond is not None:
            raise ValueError(f"the dialect {dialect} cannot write down this contract: {beyond}")
        self.base_url = base_url.rstrip("/")
        endpoints = {*self.dialect.endpoints, Endpoint.WEBHOOK, Endpoint.STORE}
        self.plan = FaultPlan(faults, record=record, endpoints=endpoints)
        self.plan.when_healed(self._healed)
        outbox = Outbox(contract.webhooks, secrets=webhook_secrets, random=random)
        self.mail = Mailroom(self, self.plan, outbox, record=record)
        self.provider = Provider(
            contract, random=random, record=record, work=work or {}, moved=self.mail.job_moved, style=self.dialect
        )
        self._custody = Custody((*webhook_secrets, *([] if authorization is None else [authorization])))
        self._record = record
        self._random = random
        self._exchanges = count(1)
        self._store: dict[tuple[str, str, str], Strikes | None] = {}
        self._heal_due = False
        self._when_changed: list[Callable[[], object]] = []

    # -- time ------------------------------------------------------------------------------------------------------

    def advance(self, now: float) -> None:
        """Let everything happen at the provider that is due."""
        if self._heal_due:
            self._heal_due = False
            self.provider.unstick(now)
        self.provider.advance(now)

    def next_due(self) -> float | None:
        """Return when something happens next without anyone calling; 0 for at once; None for never."""
        if self._heal_due:
            return 0.0
        job, event = self.provider.next_due(), self.mail.outbox.next_due()
        return event if job is None else job if event is None else min(job, event)

    def when_changed(self, callback: Callable[[], object]) -> None:
        """Call ``callback`` when ``next_due`` may have changed by something that no shell did."""
        self._when_changed.append(callback)

    def _changed(self) -> None:
        for callback in self._when_changed:
            callback()

    def _healed(self) -> None:
        self._heal_due = True
        self.mail.release()
        self._changed()

    # -- steering --------------------------------------------------------------------------------------------------

    def complete(self, operation: str, now: float) -> None:
        """Let the operation's unfinished job succeed now; ``ControlError`` if it has none."""
        self.provider.complete(operation, now)
        self._changed()

    def fail(self, operation: str, now: float, error: str | None = None) -> None:
        """Let the operation's unfinished job fail now; ``ControlError`` if it has none."""
        self.provider.fail(operation, now, error)
        self._changed()

    def ledger(self, now: float) -> list[LedgerLine]:
        """Return every job in order of creation, as it truly is."""
        self.advance(now)
        return self.provider.ledger(now)

    def fingerprint(self) -> bytes:
        """Return the state of everything on this side of the network, but for faults: equal for worlds that will do the
        same from here on when asked the same.
        """
        mail = self.mail.outbox.fingerprint(), self.mail.held()
        return _FINGERPRINT.encode((self.provider.fingerprint(), *mail))

    def outlook(self, now: float) -> tuple[object, dict[str, float]]:
        """Return what everything on this side of the network will go on from, but for faults, and what the clock alone
        will change. See :meth:`Provider.outlook`.
        """
        provider, ends = self.provider.outlook(now)
        return (provider, self.mail.outbox.outlook(now), self.mail.held(), self._heal_due), ends

    def store_point(self, *, worker: str, operation: str, state: str, point: CommitPoint, now: float) -> StoreFate:
        """Return what strikes at a client's durable write: ask with ``received`` before and ``committed`` after it.

        A client that says nothing before its writes is asked about ``committed`` only.
        """
        write = (worker, operation, state)
        if point is _P.RECEIVED or write not in self._store:
            strikes = self.plan.begin(Endpoint.STORE, operation=operation, worker=worker, state=state)
        else:
            strikes = self._store[write]
        if point is _P.RECEIVED:
            self._store[write] = strikes
        else:
            self._store.pop(write, None)
        if strikes is None:
            return _NOTHING
        course = Course(self, Endpoint.STORE, now)
        self.plan.strike(course, strikes, point, exchange=None, worker=worker, operation=operation)
        if course.refusal is not None or course.killed:
            self._store.pop(write, None)
        return StoreFate(tuple(host_effects(course, worker)), course.refusal)

    # -- exchanges -------------------------------------------------------------------------------------------------

    def exchange(self, request: Request, worker: str, now: float, *, copy_of: int | None = None) -> Exchange:
        """Take one request through all commit points."""
        self.advance(now)
        call = self._understand(request)
        number = next(self._exchanges)
        operation = self._record_request(request, call, number, worker, copy_of)
        known = None if request.elsewhere else self.provider.jobs.get(call.job)
        course = Course(self, call.endpoint, now, request=request, call=call, job=known)
        strikes: Strikes | None = None
        if copy_of is None and not request.elsewhere:
            strikes = self.plan.begin(call.endpoint, operation=operation, worker=worker)
        here = _Here(number, worker, operation, strikes, request, copy_of)

        if strikes is not None:
            yield from self._pass(course, here, _P.BEFORE_RECEIPT)
            if course.killed or course.fate is not None:
                yield from self._end(course, here, None)
                return
        if isinstance(call, Create) and call.refusal is None:
            yield from self._reserve(call, course)
        try:
            if strikes is not None:
                yield from self._pass(course, here, _P.RECEIVED)
            if course.fate is not None:
                yield from self._end(course, here, None)
                return
            if strikes is not None or course.now > now:
                self.advance(course.now)
            self._perform(call, course, number)
        finally:
            if isinstance(call, Create) and course.ticket is not None:
                self.provider.keys.release(call, course.ticket)
        if strikes is not None:
            yield from self._pass(course, here, _P.COMMITTED)
        answer = self._write(call, course, number)
        if strikes is not None and _P.ANSWERING in strikes.at and course.is_heard:
            course.now = yield Begin(answer)
        if strikes is not None:
            yield from self._pass(course, here, _P.ANSWERING)
        yield from self._end(course, here, answer)

    def _understand(self, request: Request) -> Call:
        call = self.dialect.read(request, self.contract)
        if not request.elsewhere:
            return call
        refusal = None if isinstance(call, Fetch) else Refused(problem=Problem.NOT_FOUND, detail="nothing is here")
        if refusal is None:
            return msgspec.structs.replace(call, endpoint=Endpoint.OTHER, refusal=None)
        return Call(job=call.job, operation=call.operation, token=call.token, refusal=refusal)

    def _record_request(
        self, request: Request, call: Call, number: int, worker: str, copy_of: int | None
    ) -> str | None:
        """Record that the request left, and return the operation it belongs to."""
        operation = call.operation
        if operation is None:
            job = self.provider.jobs.get(call.job)
            if job is not None:
                operation = job.operation
            elif call.token is not None:
                operation = self.provider.jobs.operation_of_token(call.token)
        headers = request.headers
        trace = _TRACEPARENT.fullmatch(headers["traceparent"]) if "traceparent" in headers else None
        exposed = self._custody.exposed(request)
        self._record(
            RequestSent(
                exchange=number,
                worker=worker,
                endpoint=call.endpoint,
                method=request.method,
                path=self._custody.path(request) if exposed else request.path,
                operation=operation,
                job=call.job,
                token=call.token,
                fingerprint=call.fingerprint if isinstance(call, Create) else None,
                trace=trace[1] if trace else None,
                credential=credential_digest(headers["authorization"]) if "authorization" in headers else None,
                origin=request.base_url if request.elsewhere else None,
                copy_of=copy_of,
                asked=call.asked if isinstance(call, Create) else None,
                exposed=exposed,
            )
        )
        return operation

    def _reserve(self, call: Create, course: Course) -> Exchange:
        """Claim the create's key, waiting for another request with the same key where the contract says so."""
        while True:
            course.ticket = self.provider.reserve(call, course.now)
            if course.ticket.gate is None:
                return
            course.now = yield WaitFor(course.ticket.gate)

    def _perform(self, call: Call, course: Course, number: int) -> None:
        if course.answer is None and course.reply is None:
            course.reply = self.provider.perform(call, number, course.now, course.ticket)
        view = course.view
        if course.job is None and view is not None:
            course.job = self.provider.jobs.get(view.id)
            request = course.request
            if request is not None and request.base_url != self.base_url:
                self.mail.came_by.setdefault(view.id, request.base_url)

    def _write(self, call: Call, course: Course, number: int) -> Answer:
        request, reply = course.request, course.reply
        assert request is not None
        answer = course.answer
        if answer is None:
            assert reply is not None
            if isinstance(reply, Served) and not reply.annex and course.job is not None:
                self._record_read(course.job, reply, number)
            answer = self.dialect.write(
                reply, call=call, request=request, contract=self.contract, now=course.now, request_id=self._request_id()
            )
        for alteration in course.alterations:
            answer = alteration(answer)
        return answer

    def _request_id(self) -> str:
        return f"req_{self._random.getrandbits(48):012x}"

    def _record_read(self, job: Job, reply: Served, number: int) -> None:
        self._record(
            ResultRead(
                job=job.id,
                operation=job.operation,
                exchange=number,
                sha256=hashlib.sha256(reply.body).hexdigest(),
                size_bytes=len(reply.body),
                time=job.reads,
            )
        )

    def _end(self, course: Course, here: "_Here", answer: Answer | None) -> Exchange:
        """Send the answer, record what became of it, and pass the last commit point."""
        send = Send(answer, course.fate or Fate.DELIVERED)
        if here.copy_of is not None:
            send.fate = Fate.LOST
        elif course.killed:
            send.fate = Fate.ABANDONED
        else:
            course.now = yield send
        told = answer or _NO_ANSWER
        self._record(
            AnswerEnded(
                exchange=here.number,
                worker=here.worker,
                endpoint=course.endpoint,
                fate=send.fate,
                status=answer.status if answer is not None else None,
                operation=told.operation or here.operation,
                job=told.job,
                jobs=told.jobs,
                remote_state=told.remote_state,
                canonical_state=told.canonical_state,
                progress=told.progress,
                retry_after_s=told.retry_after_s,
                retry_after_is_date=told.retry_after_is_date,
                replayed=told.replayed,
                problem=told.problem,
                request_id=told.request_id,
                leaving_s=0.0 if send.since is None else round(max(0.0, course.now - send.since), 6),
                from_fault=told.from_fault,
            )
        )
        if here.strikes is not None and send.fate is Fate.DELIVERED:
            yield from self._pass(course, here, _P.DELIVERED)

    def _pass(self, course: Course, here: "_Here", point: CommitPoint) -> Exchange:
        """Pass one commit point: let the faults strike, and bring about what acts at once."""
        assert here.strikes is not None
        was_killed, course.delay_s, course.copies = course.killed, 0.0, 0
        course.stops.clear()
        course.clock_ahead_s = None
        self.plan.strike(
            course, here.strikes, point, exchange=here.number, worker=here.worker, operation=here.operation
        )
        if not was_killed:
            for effect in host_effects(course, here.worker):
                course.now = yield effect
        for _ in range(course.copies):
            course.now = yield Copy(here.request, here.worker, here.number)
        if course.delay_s > 0:
            course.now = yield Wait(course.delay_s)


class _Here(msgspec.Struct, frozen=True):
    """What does not change about an exchange on its way."""

    number: int
    worker: str
    operation: str | None
    strikes: Strikes | None
    request: Request
    copy_of: int | None


_NO_ANSWER: Final = Answer(status=0, headers=(), body=b"")
