"""What a history says so far, joined: exchanges with jobs, operations and workers. Rules read it; ``chronicle`` writes
it.

The world answers the questions that make a rule fair: did this answer *surely* reach the client, how long may it have
taken a command up, whose clock was wrong. No judgement is passed here.
"""

import math
from typing import Final

from fake_provider.contract import Contract, ResultKind
from fake_provider.facts import (
    AnswerEnded,
    Endpoint,
    EventSent,
    Fate,
)
from harness.history import (
    Commanded,
    Entry,
    RunStarted,
)
from harness.rules.views import Exchange, Job, Operation, Worker

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
    def anyone_interrupted(self) -> bool:
        """Whether a worker was killed, stopped or refused a write, or had its clock set, at any time so far."""
        return self.clocks_were_set or any(worker.cut_seqs for worker in self.workers.values())

    @property
    def longest_pause_s(self) -> float:
        """The longest wait of the back-off."""
        return self.time("poll_cap_s", 2) * (1 + self.time("poll_jitter", 0.1))

    @property
    def one_try_s(self) -> float:
        """How long one more try takes at the most: the wait before it, and the wait for its answer."""
        return self.longest_pause_s + self.time("request_timeout_s", 1)

    @property
    def longest_wait_s(self) -> float:
        """How long a correct client that nobody disturbs may leave an operation alone between two steps."""
        return self.one_try_s + self.time("lease_s", 2) + self.contract.status.retry_after_s + 1

    def inline(self, job: Job) -> bool:
        """Whether the job's result comes inside its status, so that there is no result to fetch."""
        return job.fact.synchronous or self.contract.result.kind is ResultKind.INLINE

    def leave_out_blurred(self) -> None:
        """Forget the operations of which nothing can be said for certain, before it is summed up what became of all."""
        for name in self.blurred:
            self.operations.pop(name, None)
        for job in self.shared_ids:
            self.ledger.pop(job, None)

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
