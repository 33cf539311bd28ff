"""Takes a history in, entry by entry, and joins it: the world as far as it has come.

Each entry is taken in once, before rules see it, with constant work. Was this read licensed by something that happened
meanwhile, which exchange told the end of a job first: what needs the order of entries is found out here.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, ClassVar

import msgspec

from fake_provider.contract import Contract
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
from harness.rules.views import TERMINAL_STATES, Exchange, Job, Lease, Operation
from harness.rules.world import CLOCK_GRANULARITY_S, GARBLING, MISTAKEN, SETTLE_S, World

__all__ = ["Chronicle"]


class Chronicle(World):
    """A world that is being written."""

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

    _TAKERS: ClassVar[Mapping[type, Callable[["Chronicle", Entry, Any], None]]] = MappingProxyType(
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
