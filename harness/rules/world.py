"""What a history says so far, joined: exchanges with jobs, operations and workers. Rules read it, nobody else writes
it.

The world is shown each entry once, before the rules are. It answers the questions that make a rule fair: did this
answer
*surely* reach the client, was this read licensed by something that happened meanwhile, who was alive.
Constant work per entry; no judgement is passed here.
"""

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, ClassVar, Final

import msgspec

from fake_provider.contract import Contract, ResultKind
from fake_provider.facts import (
    AnswerEnded,
    Endpoint,
    EventDelivered,
    EventSent,
    Fate,
    FaultsHealed,
    FaultStruck,
    JobCreated,
    JobMoved,
    RequestSent,
    ResultRead,
)
from harness.history import (
    Claimed,
    ClockSet,
    Commanded,
    CommandRefused,
    Entry,
    LeaseNoted,
    LedgerRead,
    RunEnded,
    RunStarted,
    StateRecorded,
    WorkerEnded,
    WorkerResumed,
    WorkerStarted,
    WorkerStopped,
)
from harness.rules.views import TERMINAL_STATES, Exchange, Job, Lease, Operation, Worker

__all__ = ["MISTAKEN", "World"]

CAREFUL: Final = Contract()

CLOCK_GRANULARITY_S: Final = {"simulated": 0.002, "patched": 0.01, "process": 0.05}
"""By how much a client's timer and our stamp may differ, by mode: rounding where time is virtual, scheduling where
it is real."""

GARBLING: Final = frozenset({"html_body", "invalid_json", "wrong_content_type"})
"""Faults that leave it to the client whether an answer says anything: it may have been read, not surely."""

MISTAKEN: Final = "another_job_shown"
"""A fault by which a status answer is about another job: of the one that was asked for it tells nothing."""

SETTLE_S: Final = {"simulated": 0.0, "patched": 0.0, "process": 0.25}
"""How long a client may take to make an answer durable; a worker that is killed or stopped sooner may have lost it."""


class World:
    """The joined facts of one run, up to the entry shown last."""

    def __init__(self) -> None:
        self.contract = CAREFUL
        self.timing: dict[str, float] = {}
        self.started: RunStarted | None = None
        self.slack_s = CLOCK_GRANULARITY_S["simulated"]
        self.settle_s = SETTLE_S["simulated"]
        self.now = 0.0
        self.healed: Entry | None = None
        self.ended: Entry | None = None
        self.workers: dict[str, Worker] = {}
        self.exchanges: dict[int, Exchange] = {}
        self.jobs: dict[str, Job] = {}
        self.operations: dict[str, Operation] = {}
        self.deliveries: dict[int, tuple[Entry, EventSent]] = {}
        self.under_way: set[int] = set()  # deliveries that were not answered yet
        self.taken_events: dict[str, Entry] = {}  # event ids answered 2xx
        self.ledger: dict[str, Entry] = {}
        self.traced: dict[str, str] = {}  # the operation of each trace
        self.shared_ids: set[str] = set()  # job ids that serve more than one job
        self.blurred: set[str] = set()  # operations of such jobs: what is said or read of them may be meant for another
        self.told_while_stopped: dict[str, list[Commanded]] = {}  # by worker: it takes them up when it is resumed
        self.unheard: set[int] = set()  # commands to a worker that did not run: it may never come to hear them
        self.clocks_were_set = False
        self.notes_history = False
        self.notes_leases = False
        self.claims_made = False

    # -- questions ---------------------------------------------------------------------------------------------------

    def surely_read(self, exchange: Exchange, *, by: str | None = None) -> bool:
        """Whether the client knows the answer for certain.

        It was delivered to a running worker that was then left alone long enough to make it durable. Anyone else
        (``by`` another worker) may be held to it only once that time has passed.
        """
        ended = exchange.ended
        if ended is None or not exchange.in_hand:
            return False
        worker = exchange.request.worker
        cut_at = self.worker(worker).cut_after(ended.seq)
        if cut_at is not None and cut_at <= ended.at + self.settle_s:
            return False
        return by == worker or self.now >= ended.at + self.settle_s

    def undisturbed(self, worker: str, since: Entry) -> bool:
        """Whether ``worker`` has run without a break since an entry."""
        known = self.worker(worker)
        return known.running and known.cut_after(since.seq) is None

    def lasted(self, entry: Entry, worker: str) -> bool:
        """Whether ``worker`` was left alone long enough after an entry to make durable what it was told."""
        cut_at = self.worker(worker).cut_after(entry.seq)
        return cut_at is None or cut_at > entry.at + self.settle_s

    def known_job(
        self, operation: Operation, *, by: str | None = None, since: Entry | None = None
    ) -> tuple[str, Exchange] | None:
        """The first job id that the client knows for certain, and the answer that named it (``since`` an entry)."""
        for job, exchanges in operation.naming.items():
            for exchange in exchanges:
                told_since = since is None or (exchange.ended is not None and exchange.ended.seq > since.seq)
                if told_since and self.surely_read(exchange, by=by):
                    return job, exchange
        return None

    def observes(self, exchange: Exchange) -> bool:
        """Whether a call asks how a known job is doing: a status read, or a look-up by who surely knew the job by then
        and asks for its state in another way.
        """
        if exchange.request.endpoint is Endpoint.STATUS:
            return True
        operation = self.operation(exchange.operation or "")
        known = self.known_job(operation, by=exchange.request.worker)
        return known is not None and known[1].ended is not None and known[1].ended.seq < exchange.sent.seq

    def worker(self, name: str) -> Worker:
        known = self.workers.get(name)
        if known is None:
            # A history cut out of a longer one, or written by hand, may not tell of the start.
            known = self.workers[name] = Worker(name=name, running=True, dead=False)
        return known

    def operation(self, name: str) -> Operation:
        known = self.operations.get(name)
        if known is None:
            known = self.operations[name] = Operation(id=name)
        return known

    def taken_up_at(self, command: Entry) -> float:
        """The latest time at which a command may have been taken up: when whoever was interrupted since was back."""
        back = (each.back_at for each in self.workers.values() if each.cut_after(command.seq) is not None)
        return max((command.at, *back))

    def truth(self, operation: Operation, remote_job: str | None) -> Job | None:
        """The job an operation's claim is about: the one it names, or its only one."""
        if remote_job is not None and remote_job in self.jobs:
            return self.jobs[remote_job]
        return operation.jobs[0] if len(operation.jobs) == 1 else None

    def time(self, name: str, default: float) -> float:
        """One of the client's clocks, in seconds; ``default`` where the run does not state it."""
        return self.timing.get(name, default)

    def ran_ahead_s(self, since: Entry) -> float:
        """By how much too early a client may do what it waits for by the time of day, because the clock of its host was
        set meanwhile. That a clock is wrong all the while changes nothing about how long it takes.
        """
        return self._clock_jump(since, 1)

    def fell_behind_s(self, since: Entry) -> float:
        """By how much too late it may."""
        return self._clock_jump(since, -1)

    def _clock_jump(self, since: Entry, sign: int) -> float:
        jump_s = 0.0
        for worker in self.workers.values() if self.clocks_were_set else ():
            lowest_s = math.inf
            for ahead_s in worker.ahead_since(since.seq):
                lowest_s = min(lowest_s, sign * ahead_s)
                jump_s = max(jump_s, sign * ahead_s - lowest_s)
        return jump_s

    def clock_error_s(self, worker: str | None, since: Entry) -> float:
        """By how much the clock of a worker's host was wrong since an entry, at the most."""
        if worker is None or not self.clocks_were_set:
            return 0.0
        return max(map(abs, self.worker(worker).ahead_since(since.seq)))

    def misdated_s(self, giver: Exchange, reader: str) -> float:
        """How much sooner the date in an answer comes by the clock of whoever reads it: seconds in a Retry-After do not
        depend on that. A client may hold a date against the answer's own, and need not.
        """
        if not self.clocks_were_set or giver.answer is None or not giver.answer.retry_after_is_date:
            return 0.0
        readers = {reader, giver.request.worker}
        return max(0.0, *(max(self.worker(name).ahead_since(giver.sent.seq)) for name in readers))

    @property
    def longest_wait_s(self) -> float:
        """How long a correct client that nobody disturbs may leave an operation alone between two steps."""
        return (
            self.time("poll_cap_s", 2) * (1 + self.time("poll_jitter", 0.1))
            + self.time("request_timeout_s", 1)
            + self.time("lease_s", 2)
            + self.contract.status.retry_after_s
            + 1
        )

    def inline(self, job: Job) -> bool:
        """Whether the job's result comes inside its status, so that there is no result to fetch."""
        return job.fact.synchronous or self.contract.result.kind is ResultKind.INLINE

    def leave_out_blurred(self) -> None:
        """Forget the operations of which nothing can be said for certain, before it is summed up what became of all."""
        for name in self.blurred:
            self.operations.pop(name, None)
        for job in self.shared_ids:
            self.ledger.pop(job, None)

    # -- taking entries in -------------------------------------------------------------------------------------------

    def take(self, entry: Entry) -> None:
        """Take in the next entry."""
        self.now = entry.at
        fact = entry.fact
        taker = self._TAKERS.get(type(fact))
        if taker is not None:
            taker(self, entry, fact)

    def _run_started(self, _entry: Entry, fact: RunStarted) -> None:
        self.started = fact
        self.contract = _contract_of(msgspec.json.encode(fact.contract))
        self.timing = fact.timing
        self.slack_s = CLOCK_GRANULARITY_S.get(fact.mode, CLOCK_GRANULARITY_S["process"])
        self.settle_s = SETTLE_S.get(fact.mode, SETTLE_S["process"])

    def _commanded(self, entry: Entry, fact: Commanded) -> None:
        operation = self.operation(fact.operation)
        if not self.worker(fact.worker).running:
            self.unheard.add(entry.seq)
        if fact.command == "submit":
            if fact.changed:
                operation.changed = operation.changed or entry
            elif operation.submitted is None:
                operation.submitted = entry
            else:
                operation.submitted_again = entry
            return
        if not self.worker(fact.worker).running:
            self.told_while_stopped.setdefault(fact.worker, []).append(fact)
        self._taken_up(operation, entry, fact.command)

    @staticmethod
    def _taken_up(operation: Operation, entry: Entry, command: str) -> None:
        operation.allow(entry)
        if command == "cancel":
            operation.cancels.append(entry)
        else:
            operation.asked = entry
            if command == "decide":
                operation.decisions.append(entry)

    def _command_refused(self, entry: Entry, fact: CommandRefused) -> None:
        operation = self.operation(fact.operation)
        operation.refusals[fact.command] = entry
        if fact.command == "cancel" and operation.cancels:
            operation.cancels.pop()  # it will not be acted upon, and the person knows
        elif fact.command == "decide" and operation.decisions:
            operation.decisions.pop()

    def _worker_started(self, entry: Entry, fact: WorkerStarted) -> None:
        worker = self.worker(fact.worker)
        worker.life_since = entry.seq
        self.told_while_stopped.pop(fact.worker, None)
        worker.running, worker.dead, worker.back_at = True, False, entry.at

    def _worker_stopped(self, entry: Entry, fact: WorkerStopped) -> None:
        worker = self.worker(fact.worker)
        worker.running = False
        worker.cut(entry)

    def _worker_resumed(self, entry: Entry, fact: WorkerResumed) -> None:
        worker = self.worker(fact.worker)
        worker.running, worker.back_at = True, entry.at
        for told in self.told_while_stopped.pop(fact.worker, ()):
            operation = self.operation(told.operation)
            if told.command != "reconcile":  # it counts from here on, and once
                del (operation.cancels if told.command == "cancel" else operation.decisions)[-1:]
            self._taken_up(operation, entry, told.command)

    def _clock_set(self, entry: Entry, fact: ClockSet) -> None:
        self.clocks_were_set = True
        self.worker(fact.worker).clock_settings.append((entry.seq, fact.ahead_s))

    def _worker_ended(self, entry: Entry, fact: WorkerEnded) -> None:
        worker = self.worker(fact.worker)
        worker.running, worker.dead = False, True
        worker.cut(entry)

    def _fault_struck(self, entry: Entry, fact: FaultStruck) -> None:
        exchange = self.exchanges.get(fact.exchange) if fact.exchange is not None else None
        if exchange is not None:
            exchange.faults = (*exchange.faults, fact.kind)
        if fact.endpoint is Endpoint.STORE and fact.worker is not None:
            self.worker(fact.worker).cut(entry)  # what it was about to store may not be stored

    def _request_sent(self, entry: Entry, fact: RequestSent) -> None:
        exchange = self.exchanges[fact.exchange] = Exchange(sent=entry, request=fact)
        name = fact.operation
        if name is None and fact.trace is not None:
            name = self.traced.get(fact.trace)  # a look-up need not carry the marker, and a job may be unknown
        elif fact.job is not None and fact.trace is not None:
            name = self._as_meant(fact, name)
        exchange.operation = name
        exchange.stray = name is None or fact.origin is not None or fact.job in self.shared_ids
        if name is not None and fact.origin is not None:
            self.operation(name).elsewhere.append(exchange)
        if name is None or fact.copy_of is not None or exchange.stray:
            return
        if fact.trace is not None:
            self.traced.setdefault(fact.trace, name)
        operation = self.operation(name)
        calls = operation.calls.setdefault(fact.endpoint, [])
        exchange.previous = calls[-1] if calls else None
        calls.append(exchange)
        before, operation.last_call = operation.last_call, exchange
        if fact.endpoint is Endpoint.STATUS:
            exchange.schedule, operation.schedule = operation.schedule, exchange
        if fact.endpoint is Endpoint.STATUS or (fact.endpoint is Endpoint.LOOKUP and self.observes(exchange)):
            exchange.licence = operation.licence
            if exchange.licence is not None and not self._on_its_way(exchange, exchange.licence, before):
                operation.licence = None

    def _as_meant(self, fact: RequestSent, name: str | None) -> str | None:
        """Whose call it is when it names the job of one operation and bears the trace of another, to which the
        provider had named that job too: the other one's, which believes that the job is its own.
        """
        tracer = self.traced.get(fact.trace or "")
        if tracer is None or tracer == name or fact.job not in self.operation(tracer).naming:
            return name
        return tracer

    def _on_its_way(self, read: Exchange, licence: Entry, before: Exchange | None) -> bool:
        """Whether a read may have left before the client had taken in what allows it one: it is not that one then."""
        told = licence.fact
        if isinstance(told, EventSent) and told.delivery in self.under_way:
            return self._was_due(read)
        # Whoever is in the midst of a call takes up what it is told when that has ended.
        busy = before is not None and before.sent.seq < licence.seq and self._is_open(before, licence)
        late = isinstance(told, Commanded) and read.sent.at - licence.at <= self.settle_s
        return (busy or late) and self._was_due(read)

    def _is_open(self, call: Exchange, moment: Entry) -> bool:
        """Whether the client may still have waited for an answer at a moment after it made a call."""
        if call.ended is None or call.ended.seq > moment.seq:
            return True
        return not call.maybe_read and moment.at <= call.sent.at + self.time("request_timeout_s", 0.0)

    def _is_awaited(self, call: Exchange, moment: Entry) -> bool:
        """Whether the client surely still waited for an answer: what is under way, nothing proves to be lost."""
        cut_at = self.worker(call.request.worker).cut_after(call.sent.seq)
        gone = (call.ended is not None and call.ended.seq < moment.seq) or (cut_at is not None and cut_at <= moment.at)
        return not gone and moment.at + self.slack_s < call.sent.at + self.time("request_timeout_s", 0.0)

    def _was_due(self, read: Exchange) -> bool:
        """Whether a status read was due by the schedule alone, as far as that can be told."""
        giver = read.schedule
        if giver is None or giver.left_at is None or giver.answer is None:
            return False
        asked_s = giver.answer.retry_after_s
        if asked_s is not None and self.surely_read(giver, by=read.request.worker):
            due = giver.left_at + asked_s - self.misdated_s(giver, read.request.worker)
        else:
            due = giver.sent.at + self.time("poll_first_s", 0.0)
        return read.sent.at + self.slack_s + self.ran_ahead_s(giver.sent) >= due

    def _answer_ended(self, entry: Entry, fact: AnswerEnded) -> None:
        exchange = self.exchanges.get(fact.exchange)
        if exchange is None:
            return
        exchange.ended, exchange.answer = entry, fact
        request = exchange.request
        exchange.in_hand = (
            fact.fate is Fate.DELIVERED
            and request.copy_of is None
            and self.worker(request.worker).running
            and GARBLING.isdisjoint(exchange.faults)
        )
        name = exchange.operation or fact.operation
        if name is None or exchange.stray:
            return
        operation = self.operation(name)
        if fact.endpoint is Endpoint.RESULT and not self.intact(exchange):
            operation.licence = entry
        asked_s = fact.retry_after_s
        if asked_s is not None and fact.retry_after_is_date:
            asked_s -= min(0.0, *self.worker(request.worker).ahead_since(exchange.sent.seq))
        if exchange.maybe_read and asked_s is not None and asked_s > self.contract.status.retry_after_s:
            operation.held_until = max(operation.held_until, entry.at + asked_s)
        if exchange.maybe_read:
            self._read(operation, exchange, entry, fact)

    def _read(self, operation: Operation, exchange: Exchange, entry: Entry, fact: AnswerEnded) -> None:
        """What a client that read this answer learned from it."""
        endpoint = fact.endpoint
        if MISTAKEN in exchange.faults:
            return
        if fact.canonical_state is not None:
            operation.shown.setdefault(fact.canonical_state, entry)
            known = operation.terminal_read
            ends = fact.canonical_state in TERMINAL_STATES and self.tells_the_end(fact)
            if ends and (known is None or not self.surely_read(known)):
                operation.terminal_read = exchange
        if endpoint is Endpoint.CREATE or endpoint is Endpoint.LOOKUP:
            if fact.job is not None and fact.status is not None and fact.status < 300:
                operation.naming.setdefault(fact.job, []).append(exchange)
                operation.schedule = exchange
            elif fact.jobs:
                operation.several.append(exchange)
            elif (
                endpoint is Endpoint.LOOKUP
                and fact.status == 200
                and fact.fate is Fate.DELIVERED
                and self.contract.lookup.authoritative
                and GARBLING.isdisjoint(exchange.faults)
                and not any(self._is_awaited(create, exchange.sent) for create in operation.creates())
            ):
                operation.absences.append(entry)
        elif endpoint is Endpoint.CANCEL:
            operation.licence = entry

    def tells_the_end(self, fact: AnswerEnded) -> bool:
        """Whether a client has to take a terminal state in this answer for the job's end.

        A status read says so, and a create that brought the result with it. To a terminal state in other answers, such
        as a create's that the job failed at once, a client may pay heed, or make a status read to be sure.
        """
        job = self.jobs.get(fact.job or "")
        brought = fact.endpoint is Endpoint.CREATE and fact.canonical_state == "succeeded"
        return fact.endpoint is Endpoint.STATUS or (brought and job is not None and job.fact.synchronous)

    def intact(self, exchange: Exchange) -> bool:
        """Whether a result exchange brought the client the result as the provider holds it."""
        answer, served = exchange.answer, exchange.result
        if answer is None or answer.fate is not Fate.DELIVERED or answer.status != 200 or served is None:
            return False
        if any(kind.startswith("result_") or kind in GARBLING for kind in exchange.faults):
            return False
        job = self.jobs.get(served.job)
        return job is not None and job.result_sha256 in {None, served.sha256}

    def _result_read(self, _entry: Entry, fact: ResultRead) -> None:
        exchange = self.exchanges.get(fact.exchange)
        if exchange is not None:
            exchange.result = fact

    def _job_created(self, entry: Entry, fact: JobCreated) -> None:
        if fact.job in self.jobs:
            self.shared_ids.add(fact.job)
            self.blurred.update(
                name for name in (fact.operation, self.jobs[fact.job].fact.operation) if name is not None
            )
        job = self.jobs[fact.job] = Job(id=fact.job, created=entry, fact=fact)
        if fact.operation is not None:
            self.operation(fact.operation).jobs.append(job)

    def _job_moved(self, entry: Entry, fact: JobMoved) -> None:
        job = self.jobs.get(fact.job)
        if job is None:
            return
        job.state, job.moved = fact.after, entry
        if fact.result_sha256 is not None:
            job.result_sha256, job.records, job.failed_items = fact.result_sha256, fact.records, fact.failed_items

    def _event_sent(self, entry: Entry, fact: EventSent) -> None:
        self.deliveries[fact.delivery] = (entry, fact)
        self.under_way.add(fact.delivery)
        if not fact.genuine or fact.operation is None:
            return
        operation = self.operation(fact.operation)
        operation.events.setdefault(fact.type, entry)
        if fact.event not in self.taken_events:
            operation.allow(entry)

    def _event_delivered(self, entry: Entry, fact: EventDelivered) -> None:
        self.under_way.discard(fact.delivery)
        if fact.status is not None and 200 <= fact.status < 300:
            self.taken_events.setdefault(fact.event, entry)

    def _state_recorded(self, entry: Entry, fact: StateRecorded) -> None:
        self.notes_history = True
        operation = self.operation(fact.operation)
        operation.state_before, operation.state = operation.state, fact.after
        operation.remote_job_before = operation.remote_job
        operation.remote_job = fact.remote_job or operation.remote_job
        operation.recorded = entry
        operation.recorded_states.setdefault(fact.after, entry)

    def _lease_noted(self, entry: Entry, fact: LeaseNoted) -> None:
        self.notes_leases = True
        operation = self.operation(fact.operation)
        if fact.what in {"taken", "renewed"}:
            lease = Lease(entry=entry, worker=fact.worker, fence=fact.fence, until=entry.at + fact.lasts_s)
            operation.leases[fact.worker] = lease
            if operation.top_lease is None or fact.fence >= operation.top_lease.fence:
                operation.top_lease = lease
            return
        held = operation.leases.get(fact.worker)
        # A worker that was frozen may take a new lease before it finds that the old one is gone.
        if held is not None and held.fence <= fact.fence:
            del operation.leases[fact.worker]

    def _claimed(self, entry: Entry, fact: Claimed) -> None:
        self.claims_made = True
        self.operation(fact.operation).claims[fact.worker] = entry

    def _ledger_read(self, entry: Entry, fact: LedgerRead) -> None:
        self.ledger[fact.job] = entry

    def _faults_healed(self, entry: Entry, _fact: FaultsHealed) -> None:
        self.healed = entry

    def _run_ended(self, entry: Entry, _fact: RunEnded) -> None:
        self.ended = entry

    _TAKERS: ClassVar[Mapping[type, Callable[["World", Entry, Any], None]]] = MappingProxyType(
        {
            RunStarted: _run_started,
            Commanded: _commanded,
            CommandRefused: _command_refused,
            WorkerStarted: _worker_started,
            WorkerStopped: _worker_stopped,
            WorkerResumed: _worker_resumed,
            ClockSet: _clock_set,
            WorkerEnded: _worker_ended,
            FaultStruck: _fault_struck,
            FaultsHealed: _faults_healed,
            RequestSent: _request_sent,
            AnswerEnded: _answer_ended,
            ResultRead: _result_read,
            JobCreated: _job_created,
            JobMoved: _job_moved,
            EventSent: _event_sent,
            EventDelivered: _event_delivered,
            StateRecorded: _state_recorded,
            LeaseNoted: _lease_noted,
            Claimed: _claimed,
            LedgerRead: _ledger_read,
            RunEnded: _run_ended,
        }
    )


@lru_cache(maxsize=64)  # many runs in a row are under one contract, and reading it takes as long as judging ten facts
def _contract_of(encoded: bytes) -> Contract:
    return Contract.model_validate_json(encoded)
