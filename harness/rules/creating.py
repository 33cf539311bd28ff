"""W1: creating establishes ownership. One operation, one job, and a record before either."""

from collections.abc import Iterator

from fake_provider.contract import Mechanism
from fake_provider.facts import Endpoint, JobCreated
from harness.history import Commanded, Entry, StateRecorded
from harness.rules.registry import Needs, Rule, rule
from harness.rules.views import Exchange, Job, Operation
from harness.rules.words import at, sent
from harness.rules.world import World
from harness.verdict import Finding

__all__: list[str] = []

CREATE = frozenset({Endpoint.CREATE})


def excused_second_job(world: World, operation: Operation, exchange: Exchange) -> bool:
    """Whether a further job is not the client's doing: the network's copy, or a provider that forgot what it
    promised.
    """
    contract = world.contract
    if exchange.request.copy_of is not None or any(
        other.request.copy_of is not None for job in operation.jobs if (other := world.exchanges.get(job.fact.exchange))
    ):
        return True
    first = world.exchanges.get(operation.jobs[0].fact.exchange)
    if first is not None and first.sent.seq > exchange.sent.seq:
        first, exchange = exchange, first  # the one that was sent first took longer
    began = first.sent if first is not None else operation.jobs[0].created
    # Decided by a person, or proved absent by a look-up that the provider calls authoritative.
    if any(began.seq < known.seq < exchange.sent.seq for known in (*operation.decisions, *operation.absences)):
        return True
    if contract.idempotency.mechanism is Mechanism.NONE and exchange.previous is not None:
        return exchange.previous.redirected or exchange.previous.status == 429  # the provider said that it did nothing
    if first is None or exchange.request.token is None:
        return False
    same = (first.request.token, first.request.fingerprint) == (exchange.request.token, exchange.request.fingerprint)
    known_for_s = contract.idempotency.key_lifetime_s + world.fell_behind_s(first.sent)
    return same and exchange.sent.at - first.sent.at <= known_for_s


@rule(id="one-job-per-operation", requirement="W1.1", needs=Needs.WIRE)
class OneJobPerOperation(Rule):
    """The client's requests bring about at most one job for each operation.

    Every further job is work done, and paid for, twice. Creates are joined by the marker in the request, so that a
    new token for each attempt does not hide the second job. A job that the network's own copy of a request made, or
    that the provider made of an identical request under a token it should have known, is not held against the client;
    nor is one made after a person decided about the operation, or after a look-up that the contract calls
    authoritative found nothing.
    """

    def on_job_created(self, entry: Entry, fact: JobCreated) -> Iterator[Finding]:
        if fact.operation is None:
            return
        self.judged += 1
        operation = self.world.operation(fact.operation)
        exchange = self.world.exchanges.get(fact.exchange)
        if len(operation.jobs) < 2 or exchange is None or excused_second_job(self.world, operation, exchange):
            return
        first = operation.jobs[0]
        yield self.finding(
            f"operation {operation.id} has {len(operation.jobs)} jobs: {self._told(first)} and "
            f"{self._told(operation.jobs[-1])}. "
            f"{sent(exchange)} made the second. An unanswered create is sent again with its first token and body, or "
            "looked up.",
            first.created,
            exchange.sent,
            entry,
        )

    @staticmethod
    def _told(job: Job) -> str:
        token = "no token" if job.fact.token is None else f"token {job.fact.token}"
        return f"{job.id} {at(job.created)} with {token}"


class NoteBeforeRequest(Rule):
    """Common to rules by which something must be on record when a request leaves.

    Where notes and requests come by different ways (a process's pipe and its socket) a note may be seen a moment
    after the request it preceded: the judgement waits that long. In simulation it does not wait.
    """

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._waiting: dict[str, list[Exchange]] = {}

    def missing(self, exchange: Exchange, operation: Operation, /) -> bool:
        """Whether what must be on record before ``exchange`` is not there yet."""
        raise NotImplementedError

    def breach(self, exchange: Exchange, operation: Operation) -> Finding:
        """The finding for ``exchange``."""
        raise NotImplementedError

    def on_request(self, exchange: Exchange) -> Iterator[Finding]:
        name = exchange.operation
        if name is None:
            return
        operation = self.world.operation(name)
        if self.world.notes_history:
            self.judged += 1
        if not self.missing(exchange, operation):
            return
        if self.world.notes_history and self.world.settle_s == 0:
            yield self.breach(exchange, operation)
        else:  # whether this client notes anything at all may show only later
            self._waiting.setdefault(name, []).append(exchange)

    def on_recorded(self, entry: Entry, fact: StateRecorded) -> Iterator[Finding]:
        operation = self.world.operation(fact.operation)
        for exchange in self._waiting.pop(fact.operation, ()):
            self.judged += 1
            late = entry.at - exchange.sent.at > self.world.settle_s or self.world.settle_s == 0
            if late or self.missing(exchange, operation):
                yield self.breach(exchange, operation)

    def at_end(self) -> Iterator[Finding]:
        if not self.world.notes_history:
            return
        for name, exchanges in self._waiting.items():
            for exchange in exchanges:
                self.judged += 1
                yield self.breach(exchange, self.world.operation(name))


@rule(id="record-before-request", requirement="W1.2", needs=Needs.HISTORY)
class RecordBeforeRequest(NoteBeforeRequest):
    """Before the first create of an operation leaves, its record is durable.

    No record, no request: a client that dies in between would know nothing of a job that may exist.
    """

    endpoints = CREATE

    def missing(self, exchange: Exchange, operation: Operation) -> bool:
        return exchange.previous is None and operation.recorded is None

    def breach(self, exchange: Exchange, operation: Operation) -> Finding:
        return self.finding(
            f"{sent(exchange)} for {operation.id} left before any record of the operation was durable. "
            "Store operation id, request, token and times first; then send.",
            exchange.sent,
            operation.recorded,
        )


@rule(id="accepted-only-if-answered", requirement="W1.4", needs=Needs.HISTORY)
class AcceptedOnlyIfAnswered(Rule):
    """A job id is recorded only after an answer, a webhook or a person's decision named it.

    An open connection, or bytes sent before a time-out, prove nothing: only the provider ties a request to a job.
    """

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._named: dict[str, set[str]] = {}

    def on_answer(self, exchange: Exchange) -> Iterator[Finding]:
        answer, name = exchange.answer, exchange.operation
        if name is not None and answer is not None and answer.job is not None and exchange.maybe_read:
            self._named.setdefault(name, set()).add(answer.job)
        return iter(())

    def on_recorded(self, entry: Entry, fact: StateRecorded) -> Iterator[Finding]:
        operation = self.world.operation(fact.operation)
        if fact.remote_job is None or fact.remote_job == operation.remote_job_before:
            return
        self.judged += 1
        if fact.remote_job in self._named.get(fact.operation, ()) or operation.events or operation.decided is not None:
            return
        yield self.finding(
            f"{fact.worker} recorded job {fact.remote_job} for {fact.operation} {at(entry)}, and no answer that "
            "reached it names "
            "that job. Record a job id when an answer, a look-up or a verified webhook ties it to the operation.",
            entry,
        )


@rule(id="observing-only-after-accepted", requirement="W1.5", needs=Needs.HISTORY)
class ObservingOnlyAfterAccepted(NoteBeforeRequest):
    """A job is observed only once its id is in the durable record.

    A job id that lives only in a worker's memory dies with the worker, and a job nobody knows of goes on.
    """

    endpoints = frozenset({Endpoint.STATUS})

    def missing(self, exchange: Exchange, operation: Operation) -> bool:
        return exchange.request.job is not None and operation.remote_job is None

    def breach(self, exchange: Exchange, operation: Operation) -> Finding:
        return self.finding(
            f"{sent(exchange)} reads job {exchange.request.job}, which the record of {operation.id} does not name yet. "
            "Make the job id durable as soon as the answer names it, and observe after that.",
            exchange.sent,
        )


@rule(id="synchronous-success-is-no-acceptance", requirement="W1.6", needs=Needs.HISTORY)
class SynchronousSuccessIsNoAcceptance(Rule):
    """A create that was answered with the finished job is recorded as such, not as an accepted one; and the other way
    round.

    From ``create_pending`` a synchronous success leads to ``result_collecting``, an accepted job to ``accepted``. A
    client that takes one path for the other either waits for what it has, or collects what is not there.
    """

    reaching = frozenset({"accepted", "result_collecting"})

    def on_recorded(self, entry: Entry, fact: StateRecorded) -> Iterator[Finding]:
        if fact.before != "create_pending":
            return
        creates = [each for each in self.world.operation(fact.operation).creates() if each.maybe_read]
        answer = creates[-1].answer if creates else None
        if answer is None or answer.job is None or answer.canonical_state is None or answer.from_fault:
            return
        self.judged += 1
        finished = answer.canonical_state == "succeeded"
        if finished == (fact.after == "result_collecting") or (answer.replayed and finished):
            return
        told = "the finished job" if finished else f"a job that is {answer.canonical_state}"
        yield self.finding(
            f"{fact.worker} recorded {fact.operation} as {fact.after} {at(entry)}, but its create was answered with "
            f"{told} "
            f"({at(creates[-1].ended or entry)}). Both paths are recorded under the operation, each as what it is.",
            creates[-1].ended,
            entry,
        )


@rule(id="changed-request-is-new-operation", requirement="W1.7", needs=Needs.WIRE)
class ChangedRequestIsNewOperation(Rule):
    """A request with changed parameters is never sent under an operation that has its request already.

    A token that is bound to one request shape must not authorise another; whoever wants something else wants a new
    operation.
    """

    endpoints = CREATE

    def on_request(self, exchange: Exchange) -> Iterator[Finding]:
        operation = self.world.operation(exchange.operation or "")
        first = operation.creates()[0] if operation.creates() else exchange
        if operation.changed is None or operation.submitted is None or exchange.request.fingerprint is None:
            return
        self.judged += 1
        if first is exchange or exchange.request.fingerprint == first.request.fingerprint:
            return
        yield self.finding(
            f"{sent(exchange)} for {operation.id} carries another request than {sent(first)}, after the operation was "
            "submitted "
            f"with changed parameters {at(operation.changed)}. Refuse the change, or make a new operation with a new "
            "token.",
            first.sent,
            operation.changed,
            exchange.sent,
        )


@rule(id="job-is-what-was-asked-for", requirement="W1.2", needs=Needs.WIRE)
class JobIsWhatWasAskedFor(Rule):
    """A create asks for what was submitted: the same kind of job, with the same parameters.

    A parameter that is dropped, cut short, made text of, or another operation's makes a job that nobody wants, and its
    result looks right. Compared by value, however the client writes it; what it adds beside ``kind`` and ``parameters``
    is its own affair. (What is sent after a submit of another request, ``changed-request-is-new-operation`` judges.)
    """

    endpoints = CREATE

    def on_request(self, exchange: Exchange) -> Iterator[Finding]:
        operation = self.world.operation(exchange.operation or "")
        submitted = operation.submitted
        if submitted is None or not isinstance(submitted.fact, Commanded) or operation.changed is not None:
            return
        wanted, asked = submitted.fact.asked, exchange.request.asked
        if wanted is None or asked is None:
            return
        self.judged += 1
        if asked != wanted and self.first_time(operation.id):
            yield self.finding(
                f"{sent(exchange)} for {operation.id} asks for another job than was submitted {at(submitted)}: its "
                f"kind or parameters ({asked}) are not those of the submit ({wanted}). Store the request as it was "
                "given, and send that.",
                submitted,
                exchange.sent,
            )


@rule(id="one-request-per-token", requirement="W1.7", needs=Needs.WIRE)
class OneRequestPerToken(Rule):
    """A token is used for one operation only.

    The provider answers a known token with what it did the first time: the second operation would be given the first
    one's job.
    """

    endpoints = CREATE

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._owners: dict[str, Exchange] = {}

    def on_request(self, exchange: Exchange) -> Iterator[Finding]:
        request = exchange.request
        if request.token is None or exchange.operation is None:
            return
        self.judged += 1
        owner = self._owners.setdefault(request.token, exchange)
        if owner.operation == exchange.operation or not self.first_time(request.token, exchange.operation):
            return
        yield self.finding(
            f"{sent(exchange)} for {exchange.operation} carries token {request.token}, which {sent(owner)} used for "
            f"{owner.operation}. Mint a token for each operation.",
            owner.sent,
            exchange.sent,
        )


@rule(id="changed-submit-refused", requirement="W1.7", needs=Needs.REPORT)
class ChangedSubmitRefused(Rule):
    """A submit of another request under a known operation id is refused, and whoever submitted it is told.

    To take it in silence tells a person that the change will be made. Judged where the worker that was told went on
    undisturbed.
    """

    def at_end(self) -> Iterator[Finding]:
        for operation in self.world.operations.values():
            changed = operation.changed
            if changed is None or not isinstance(changed.fact, Commanded):
                continue
            refusal = operation.refusals.get("submit")
            refused = refusal is not None and refusal.seq > changed.seq
            if not refused and not self.world.undisturbed(changed.fact.worker, changed):
                continue
            self.judged += 1
            if not refused:
                yield self.finding(
                    f"{changed.fact.worker} was given another request for {operation.id} {at(changed)} and did not "
                    "refuse it. "
                    "Say that the operation exists with another request, and that a change needs a new operation.",
                    operation.submitted,
                    changed,
                )
