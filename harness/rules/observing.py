"""W4: observing has an owner and an end. (``scheduling`` judges its delay, ``webhooks`` its short cuts.)"""

import math
from collections.abc import Iterable, Iterator

from fake_provider.contract import ResultKind
from fake_provider.facts import Endpoint
from harness.history import Commanded, Entry, LeaseNoted, StateRecorded, WorkerResumed
from harness.rules.local_states import WAITING_FOR_A_PERSON
from harness.rules.reached import StateReached
from harness.rules.registry import Needs, Rule, rule
from harness.rules.views import TERMINAL_STATES, Exchange, Operation
from harness.rules.words import answered, at, seconds, sent
from harness.rules.world import MISTAKEN, World
from harness.verdict import Finding

__all__: list[str] = []

POLLS = frozenset({Endpoint.STATUS, Endpoint.LOOKUP})
"""Calls by which a job may be observed."""

CONFIRMING_READS = 1
"""How often a job that was seen at its end may be read again: a final read before success is no more than W4.7
asks for."""


@rule(id="stale-worker-does-nothing", requirement="W4.1", needs=Needs.HISTORY)
class StaleWorkerDoesNothing(Rule):
    """A worker whose lease another one has taken over sends nothing and records nothing for that operation.

    It was stopped or slow, and believes what is no longer true: its cancel is the second, its write undoes the
    successor's. Judged where the client notes its leases, by the fence numbers in the notes. A worker that was started
    anew believes nothing; and writing down a command that somebody gives needs no lease, whether it is noted or moves
    the record at once.
    """

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._written: dict[
            tuple[str, str], int
        ] = {}  # by operation and worker: the last command that moved the record

    def on_request(self, exchange: Exchange) -> Iterator[Finding]:
        name, worker = exchange.operation, exchange.request.worker
        if name is None:
            return
        yield from self._judge(exchange.sent, name, worker, f"{sent(exchange)} goes out")

    def on_recorded(self, entry: Entry, fact: StateRecorded) -> Iterator[Finding]:
        if (fact.entry != "note" or fact.before != fact.after) and not self._writes_down_a_command(fact):
            did = f"{fact.worker} recorded {fact.after} {at(entry)}"
            yield from self._judge(entry, fact.operation, fact.worker, did)

    def _writes_down_a_command(self, fact: StateRecorded) -> bool:
        """Whether a record moves as a command moves it, and this worker was given one that it had not written down."""
        if fact.after != "cancel_requested" and fact.before not in WAITING_FOR_A_PERSON:
            return False
        operation, key = self.world.operation(fact.operation), (fact.operation, fact.worker)
        for told in (*operation.cancels[-1:], operation.asked):
            to_it = (
                told is not None
                and isinstance(told.fact, Commanded | WorkerResumed)
                and told.fact.worker == fact.worker
            )
            if told is not None and to_it and told.seq > self._written.get(key, -1):
                self._written[key] = told.seq
                return True
        return False

    def _judge(self, entry: Entry, name: str, worker: str, did: str) -> Iterator[Finding]:
        operation = self.world.operation(name)
        mine, top = operation.leases.get(worker), operation.top_lease
        if mine is None or top is None or mine.entry.seq < self.world.worker(worker).life_since:
            return
        self.judged += 1
        # Notes of two processes may cross on their way here.
        if top.worker == worker or top.fence <= mine.fence or entry.at < top.entry.at + self.world.settle_s:
            return
        yield self.finding(
            f"{did} for {name}, although {top.worker} took the lease over {at(top.entry)} with fence {top.fence}, and "
            f"{worker} had "
            f"fence {mine.fence}. Check the lease before each call, and fence every write.",
            mine.entry,
            top.entry,
            entry,
        )


@rule(id="lease-taken-over-only-after-expiry", requirement="W4.1", needs=Needs.HISTORY)
class LeaseTakenOverOnlyAfterExpiry(Rule):
    """A lease is taken over after it has expired or was given back, not before.

    Even if its holder looks dead: it may be slow, and about to send a request.
    """

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._held: dict[str, tuple[Entry, LeaseNoted]] = {}

    def on_lease(self, entry: Entry, fact: LeaseNoted) -> Iterator[Finding]:
        held = self._held.get(fact.operation)
        if fact.what not in {"taken", "renewed"}:
            if held is not None and held[1].worker == fact.worker and held[1].fence <= fact.fence:
                del self._held[fact.operation]
            return
        self._held[fact.operation] = (entry, fact)
        if held is None or held[1].worker == fact.worker or fact.what == "renewed":
            return
        self.judged += 1
        since, lease = held
        left_s = since.at + lease.lasts_s - entry.at
        if left_s <= max(self.world.slack_s, self.world.settle_s):
            return
        yield self.finding(
            f"{fact.worker} took the lease on {fact.operation} {at(entry)}, {seconds(left_s)} before that of "
            f"{lease.worker} expires "
            f"({lease.what} {at(since)} for {seconds(lease.lasts_s)}). Wait until it has expired.",
            since,
            entry,
        )


@rule(id="observes-only-under-lease", requirement="W4.1", needs=Needs.HISTORY)
class ObservesOnlyUnderLease(Rule):
    """A worker reads or cancels a job only while it holds the operation's lease.

    Judged where the client notes its leases.
    """

    endpoints = frozenset({Endpoint.STATUS, Endpoint.CANCEL})

    def on_request(self, exchange: Exchange) -> Iterator[Finding]:
        name, worker = exchange.operation, exchange.request.worker
        if name is None or not self.world.notes_leases or self.world.settle_s:
            return  # where notes and requests come by different ways, a note may be on its way still
        self.judged += 1
        operation = self.world.operation(name)
        lease = operation.leases.get(worker)
        if lease is not None and exchange.sent.at <= lease.until + self.world.slack_s:
            return
        had = "holds no lease" if lease is None else f"held a lease until {seconds(lease.until)}"
        yield self.finding(
            f"{sent(exchange)} for {name} goes out while {worker} {had}. Take the lease first, or renew it.",
            None if lease is None else lease.entry,
            exchange.sent,
        )


@rule(id="no-poll-after-terminal", requirement="W4.1", needs=Needs.WIRE)
class NoPollAfterTerminal(Rule):
    """Once a status read has surely shown a terminal state, the job is not polled any more.

    Observing has an end. One read more is allowed, to confirm; further ones only if a webhook, a command, or a result
    that could not be had gives a reason. What a create or a cancel was answered with does not count: a client may
    insist on a status read, and on a further one if that came to nothing, as it may where it confirms. To look a known
    job up is to poll it, too.
    """

    endpoints = POLLS

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._terminal: dict[str, Exchange] = {}
        self._with_reason: dict[str, Exchange] = {}  # by operation: the last read that there was a reason for
        self._confirming: dict[str, Exchange] = {}  # by operation: the last read that there was none for
        self._reads: dict[str, int] = {}

    def on_answer(self, exchange: Exchange) -> Iterable[Finding]:
        if not self.world.observes(exchange) or MISTAKEN in exchange.faults:
            return ()
        name = exchange.operation or ""
        state = exchange.answer and exchange.answer.canonical_state
        known = self._terminal.get(name)
        if state in TERMINAL_STATES:
            self.judged += 1
            if known is None or not self.world.surely_read(known):
                self._terminal[name] = exchange
        elif state is not None:
            self._terminal.pop(name, None)  # the provider itself takes it back
        return ()

    def _has_reason(self, exchange: Exchange) -> bool:
        """Whether something calls for this read, or for one before it that surely came to nothing."""
        if exchange.licence is not None:
            return True
        return self._came_to_nothing(self._with_reason.get(exchange.operation or ""))

    def _came_to_nothing(self, read: Exchange | None) -> bool:
        """Whether the client may have learned nothing of the job by a read that was made."""
        if read is None:
            return False
        told = read.answer is not None and read.answer.canonical_state is not None
        return not told or not self.world.surely_read(read)

    def on_request(self, exchange: Exchange) -> Iterator[Finding]:
        operation = self.world.operation(exchange.operation or "")
        terminal = self._terminal.get(operation.id)
        if not self.world.observes(exchange):
            return
        if self._has_reason(exchange):
            self._with_reason[operation.id] = exchange
            return
        if (
            terminal is None
            or terminal.ended is None
            or not self.world.surely_read(terminal, by=exchange.request.worker)
        ):
            return
        if operation.decided is not None or (operation.asked is not None and operation.asked.seq > terminal.ended.seq):
            return
        before = self._confirming.get(operation.id)
        self._confirming[operation.id] = exchange
        if self._came_to_nothing(before):
            return
        reads = self._reads[operation.id] = self._reads.get(operation.id, 0) + 1
        if reads > CONFIRMING_READS and self.first_time(operation.id):
            state = terminal.answer and terminal.answer.canonical_state
            yield self.finding(
                f"{sent(exchange)} is read {reads} of {operation.id} after {sent(terminal)} showed that its job is "
                f"{state}. A terminal state ends the polling.",
                terminal.ended,
                exchange.sent,
            )


def result_deadline(world: World, operation: Operation) -> float | None:
    """The latest time at which any correct client's result deadline has passed; None if that cannot be told.

    A client may count from the submit, from its first create or from the answer that named the job; the last of these
    is used. An answer that was delivered to a worker that died over it may have named the job to nobody.
    """
    deadline_s = world.timing.get("result_deadline_s")
    creates = operation.creates()
    if deadline_s is None or not creates:
        return None
    began = [creates[0].sent.at]
    for exchanges in operation.naming.values():
        known = next((each for each in exchanges if world.surely_read(each)), exchanges[-1])
        began.extend([known.ended.at] if known.ended is not None else [])
    return max(began) + deadline_s


@rule(id="no-poll-after-result-deadline", requirement="W4.6", needs=Needs.WIRE)
class NoPollAfterResultDeadline(Rule):
    """After the result deadline the job is not polled any more.

    Passing it is a state: polling stops, the job may go on, and a person decides. One last read at the deadline is
    allowed; a stop command opens the time until the cancel deadline; a webhook or a person's command allows one read.
    Once the end of the job was read, a status read is part of collecting: where its result now is, nothing else tells.
    To look a known job up is to poll it, too.
    """

    endpoints = POLLS

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._late: dict[str, int] = {}

    def on_request(self, exchange: Exchange) -> Iterator[Finding]:
        operation = self.world.operation(exchange.operation or "")
        deadline = result_deadline(self.world, operation)
        if deadline is None or operation.terminal_read is not None or not self.world.observes(exchange):
            return
        cancel_deadline_s = self.world.timing.get("cancel_deadline_s", 0)
        cancels = [each.sent.at for each in operation.calls.get(Endpoint.CANCEL, ())]
        for began in (*map(self.world.taken_up_at, operation.cancels), *cancels):
            deadline = max(deadline, began + cancel_deadline_s)
        self.judged += 1
        late_s = exchange.sent.at - deadline - self.world.fell_behind_s(operation.creates()[0].sent)
        if late_s <= self.world.slack_s or exchange.licence is not None or operation.asked is not None:
            return
        late = self._late[operation.id] = self._late.get(operation.id, 0) + 1
        if late > 1 and self.first_time(operation.id):
            yield self.finding(
                f"{sent(exchange)} for {operation.id} is read {late} after the result deadline, which passed at "
                f"{seconds(exchange.sent.at - late_s)}: {seconds(late_s)} late. "
                "Stop polling at the deadline and record result_timed_out.",
                exchange.sent,
            )


class DeadlineClaim(StateReached):
    """Common to rules by which a state is reached only after a deadline has passed."""

    state: str
    deadline: str  # the clock's name in the timing

    def began(self, operation: Operation) -> Entry | None:
        """What the deadline is counted from, at the earliest."""
        raise NotImplementedError

    def judge_state(self, entry: Entry, operation: Operation, said: str, _remote_job: str | None) -> Iterator[Finding]:
        began, deadline_s = self.began(operation), self.world.timing.get(self.deadline)
        if began is None or deadline_s is None or operation.decided is not None:
            return
        self.judged += 1
        early_s = began.at + deadline_s - entry.at - self.world.ran_ahead_s(began)
        if early_s > self.world.slack_s and self.first_time(operation.id):
            yield self.finding(
                f"{said} {self.state} for {operation.id} {at(entry)}, {seconds(early_s)} before the deadline of "
                f"{seconds(deadline_s)} counted "
                f"from {at(began)[3:]}. Only the deadline's passing makes it so.",
                began,
                entry,
            )


@rule(id="timed-out-only-after-deadline", requirement="W4.6", needs=Needs.REPORT)
class TimedOutOnlyAfterDeadline(DeadlineClaim):
    """``result_timed_out`` is claimed or recorded only after the result deadline.

    Counted from the submit, the earliest that a client can count from. A lost poll, or a create that took long, is no
    time-out.
    """

    state = "result_timed_out"
    reaching = frozenset({state})
    deadline = "result_deadline_s"

    def began(self, operation: Operation) -> Entry | None:
        return operation.submitted


@rule(id="timed-out-only-if-observed", requirement="W4.6", needs=Needs.REPORT)
class TimedOutOnlyIfObserved(StateReached):
    """``result_timed_out`` is recorded or claimed only of a job that was looked at.

    The deadline ends the polling; it does not stand for it. The job may have ended long ago, and whoever waited for a
    webhook, or for nothing, does not know. Judged where the job was surely known in time for a read, and where nobody
    was interrupted or told to stop.
    """

    reaching = frozenset({"result_timed_out"})

    def judge_state(self, entry: Entry, operation: Operation, said: str, _remote_job: str | None) -> Iterator[Finding]:
        world = self.world
        known, began = world.known_job(operation), operation.submitted
        if (
            known is None
            or known[1].ended is None
            or began is None
            or operation.cancels
            or operation.decided is not None
        ):
            return
        if world.anyone_interrupted:
            return
        job, told = known[0], known[1].ended
        deadline = min(began.at + world.time("result_deadline_s", math.inf), entry.at)
        if max(told.at, operation.held_until) + world.longest_wait_s > deadline:
            return
        self.judged += 1
        looked = any(
            each.sent.seq > told.seq
            for endpoint in (Endpoint.STATUS, Endpoint.LOOKUP)
            for each in operation.calls.get(endpoint, ())[-1:]
        )
        if not looked and self.first_time(operation.id):
            yield self.finding(
                f"{said} result_timed_out for {operation.id} {at(entry)}, but its job {job}, known since "
                f"{at(told)[3:]}, was never looked at. Read its status until the deadline, webhooks or not.",
                told,
                entry,
            )


@rule(id="result-read-only-after-success", requirement="W4.5", needs=Needs.WIRE)
class ResultReadOnlyAfterSuccess(Rule):
    """A result is fetched only after an answer or a webhook showed that the job succeeded, or that it ended early where
    the contract keeps what was done until then.

    Progress is for operators: 100 % is not done, and only a terminal state steers the workflow. (After a webhook alone,
    ``final-read-before-success`` judges.)
    """

    endpoints = frozenset({Endpoint.RESULT})

    def on_request(self, exchange: Exchange) -> Iterator[Finding]:
        operation = self.world.operation(exchange.operation or "")
        if self.world.contract.result.kind is ResultKind.INLINE:
            return
        self.judged += 1
        if "succeeded" in operation.shown or "job.succeeded" in operation.events or operation.decided is not None:
            return
        if self.world.contract.result.partial and {"cancelled", "failed"} & operation.shown.keys():
            return  # what was done until then
        if self.first_time(operation.id):
            reads = operation.calls.get(Endpoint.STATUS)
            status = reads[-1] if reads else None
            seen = "no status read had been made"
            if status is not None:
                told = status.answer and (status.answer.remote_state or status.answer.canonical_state)
                percent = status.answer and status.answer.progress
                shown = "" if told is None else f" with {told}" + ("" if percent is None else f", {percent} %")
                seen = f"{sent(status)} was {answered(status)}{shown}"
            yield self.finding(
                f"{sent(exchange)} fetches the result of {operation.id}, but nothing had shown that its job "
                f"succeeded: {seen}. "
                "Fetch it once a status read says so.",
                None if status is None else status.ended,
                exchange.sent,
            )
