"""W6: cancelling needs confirmation and a damage boundary."""

from collections.abc import Iterator

from fake_provider.contract import CancelEffect
from fake_provider.facts import Endpoint, Fate
from harness.history import Claimed, Entry
from harness.rules.creating import NoteBeforeRequest
from harness.rules.observing import POLLS, DeadlineClaim
from harness.rules.registry import Needs, Rule, rule
from harness.rules.views import Exchange, Operation
from harness.rules.words import answered, at, seconds, sent
from harness.rules.world import World
from harness.verdict import Finding

__all__: list[str] = []

CANCEL = frozenset({Endpoint.CANCEL})
OPEN_STATES = frozenset({None, "queued", "running", "cancelling"})


@rule(id="cancel-intent-recorded-first", requirement="W6.1", needs=Needs.HISTORY)
class CancelIntentRecordedFirst(NoteBeforeRequest):
    """Before a cancel call leaves, ``cancel_requested`` is on record.

    Who wants it and why comes first; then the call. Else a worker that dies in between leaves a cancelled job nobody
    asked for.
    """

    endpoints = CANCEL

    def missing(self, _exchange: Exchange, operation: Operation, /) -> bool:
        return "cancel_requested" not in operation.recorded_states

    def breach(self, exchange: Exchange, operation: Operation) -> Finding:
        return self.finding(
            f"{sent(exchange)} for {operation.id} left before cancel_requested was on record. Record the intent first.",
            exchange.sent,
        )


@rule(id="cancel-only-when-commanded", requirement="W6.1", needs=Needs.WIRE)
class CancelOnlyWhenCommanded(Rule):
    """A cancel call follows a stop command.

    Or a submit with changed parameters, on which the old operation may be cancelled. A deadline, an error or a
    shutdown is no command.
    """

    endpoints = CANCEL

    def on_request(self, exchange: Exchange) -> Iterator[Finding]:
        operation = self.world.operation(exchange.operation or "")
        self.judged += 1
        if (
            not operation.cancels
            and operation.changed is None
            and operation.decided is None
            and self.first_time(operation.id)
        ):
            yield self.finding(
                f"{sent(exchange)} cancels job {exchange.request.job} of {operation.id}, and nobody had asked for "
                "that. "
                "Cancel only on a recorded command, with who and why.",
                exchange.sent,
            )


@rule(id="cancel-only-where-offered", requirement="W6.1", needs=Needs.WIRE)
class CancelOnlyWhereOffered(Rule):
    """No cancel call is sent to a provider that documents none."""

    endpoints = CANCEL

    def on_request(self, exchange: Exchange) -> Iterator[Finding]:
        self.judged += 1
        if self.world.contract.cancel.effect is CancelEffect.UNSUPPORTED and self.first_time(exchange.operation):
            yield self.finding(
                f"{sent(exchange)} for {exchange.operation} calls what the contract does not offer. "
                "Say that this job cannot be cancelled.",
                exchange.sent,
            )


@rule(id="cancel-names-recorded-job", requirement="W6.1", needs=Needs.HISTORY)
class CancelNamesRecordedJob(NoteBeforeRequest):
    """A cancel call names the job that is on record for the operation."""

    endpoints = CANCEL

    def missing(self, exchange: Exchange, operation: Operation) -> bool:
        return exchange.request.job is not None and exchange.request.job != operation.remote_job

    def breach(self, exchange: Exchange, operation: Operation) -> Finding:
        return self.finding(
            f"{sent(exchange)} for {operation.id} cancels job {exchange.request.job}; on record is "
            f"{operation.remote_job or 'none'}. "
            "Cancel with the stored job id.",
            exchange.sent,
        )


@rule(id="one-cancel-per-intent", requirement="W6.4", needs=Needs.WIRE)
class OneCancelPerIntent(Rule):
    """One stop command leads to one cancel call, sent by the lease owner.

    It is sent again only if what came of it is uncertain and the contract calls a second one harmless, after a 429
    (nothing was done), or on a further command.
    """

    endpoints = CANCEL

    def on_request(self, exchange: Exchange) -> Iterator[Finding]:
        operation = self.world.operation(exchange.operation or "")
        self.judged += 1
        previous = exchange.previous
        if previous is None:
            return
        since = previous.sent.seq
        commands = [operation.decided, *operation.cancels[-1:]]
        if any(command is not None and command.seq > since for command in commands):
            return
        repeatable = self.world.contract.cancel.repeatable
        if previous.redirected or (previous.maybe_read and previous.status == 429):
            return
        if repeatable and self._uncertain(previous, exchange.request.worker):
            return
        why = "the outcome was certain" if repeatable else "the contract does not call a second cancel harmless"
        yield self.finding(
            f"{sent(exchange)} for {operation.id} is call {len(operation.calls[Endpoint.CANCEL])} for one stop "
            "command: "
            f"{sent(previous)} was {answered(previous)}, and {why}. Send one cancel for each intent, and observe on.",
            previous.sent,
            previous.ended,
            exchange.sent,
        )

    def _uncertain(self, cancel: Exchange, worker: str) -> bool:
        status = cancel.status
        in_progress = cancel.answer is not None and cancel.answer.problem == "request_in_progress"
        return (
            not self.world.surely_read(cancel, by=worker)
            or status is None
            or status >= 500
            or status in {404, 408, 425}
            or in_progress  # a 409 that is not about the job's end
        )


@rule(id="no-cancel-after-terminal", requirement="W6.4", needs=Needs.WIRE)
class NoCancelAfterTerminal(Rule):
    """No cancel call is sent for a job whose terminal state was surely read before."""

    endpoints = CANCEL

    def on_request(self, exchange: Exchange) -> Iterator[Finding]:
        operation = self.world.operation(exchange.operation or "")
        self.judged += 1
        terminal = operation.terminal_read
        if (
            terminal is None
            or terminal.ended is None
            or not self.world.surely_read(terminal, by=exchange.request.worker)
            or operation.decided is not None
        ):
            return
        if exchange.sent.at <= terminal.ended.at + self.world.slack_s:  # on its way when the answer came
            return
        if self.first_time(operation.id):
            yield self.finding(
                f"{sent(exchange)} cancels job {exchange.request.job} of {operation.id}, which {sent(terminal)} had "
                "shown to be "
                f"{terminal.answer and terminal.answer.canonical_state} {at(terminal.ended)}. There is nothing left "
                "to stop.",
                terminal.ended,
                exchange.sent,
            )


def gave_up(world: World, operation: Operation, since: Entry) -> bool:
    """Whether the client rightly does no more: it waits for a person, or its clock was put past a deadline."""
    states = {entry.fact.state for entry in operation.claims.values() if isinstance(entry.fact, Claimed)}
    over = {"cancellation_unconfirmed", "result_timed_out"} if world.ran_ahead_s(since) else set()
    return not states.isdisjoint({"human_decision_required", *over})


@rule(id="observation-continues-after-cancel", requirement="W6.2", needs=Needs.WIRE)
class ObservationContinuesAfterCancel(Rule):
    """After a cancel call that was accepted, not confirmed, the job is observed on.

    ``cancelled``, ``succeeded`` and ``failed`` are all possible ends, and only observation tells which one it was.
    """

    def at_end(self) -> Iterator[Finding]:
        for operation in self.world.operations.values():
            cancels = operation.calls.get(Endpoint.CANCEL, ())
            for cancel in cancels[:1]:
                yield from self._judge(operation, cancel)

    def _judge(self, operation: Operation, cancel: Exchange) -> Iterator[Finding]:
        answer, ended, over = cancel.answer, cancel.ended, self.world.ended
        if (
            answer is None
            or ended is None
            or over is None
            or answer.fate is not Fate.DELIVERED
            or operation.decided is not None
        ):
            return
        accepted = answer.status is not None and 200 <= answer.status < 300 and answer.canonical_state in OPEN_STATES
        told = operation.terminal_read is not None or {"job.cancelled", "job.failed"} & operation.events.keys()
        reads = [*operation.calls.get(Endpoint.STATUS, ()), *operation.calls.get(Endpoint.LOOKUP, ())]
        observed = any(each.sent.seq > ended.seq for each in reads)
        if not accepted or (told and not observed):
            return
        if not observed and (
            over.at <= ended.at + self.world.longest_wait_s + self.world.fell_behind_s(cancel.sent)
            or not self.world.undisturbed(cancel.request.worker, cancel.sent)
            or self._is_held(operation, ended, over)
            or gave_up(self.world, operation, cancel.sent)
        ):
            return
        self.judged += 1
        if not observed:
            yield self.finding(
                f"{sent(cancel)} for {operation.id} was {answered(cancel)}, which confirms nothing, and its job was "
                "not read again "
                f"in the {seconds(over.at - ended.at)} until the end. Observe on until the job's end is known.",
                cancel.sent,
                ended,
                over,
            )

    def _is_held(self, operation: Operation, cancelled: Entry, over: Entry) -> bool:
        """Whether a Retry-After kept the client from reading until the cancel's deadline, or nearly so."""
        world = self.world
        until = min(over.at, cancelled.at + world.time("cancel_deadline_s", 0))
        return operation.held_until > max(cancelled.at, until - world.one_try_s)


@rule(id="no-poll-after-cancel-deadline", requirement="W6.5", needs=Needs.WIRE)
class NoPollAfterCancelDeadline(Rule):
    """After the cancel deadline a job whose cancel was accepted is not polled any more.

    Then it is ``cancellation_unconfirmed``, and a person is told. Counted from the last stop command or cancel call.
    One last read at the deadline is allowed; a webhook or a person's command allows one read. To look a known job up is
    to poll it, too.
    """

    endpoints = POLLS

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._late: dict[str, int] = {}

    def on_request(self, exchange: Exchange) -> Iterator[Finding]:
        world, operation = self.world, self.world.operation(exchange.operation or "")
        cancels = [each for each in operation.calls.get(Endpoint.CANCEL, ()) if each.ended is not None]
        deadline_s = world.timing.get("cancel_deadline_s")
        if deadline_s is None or operation.terminal_read is not None or not any(map(self._is_accepted, cancels)):
            return
        if not world.observes(exchange):
            return
        told = [each for each in (*operation.cancels, operation.asked, operation.decided) if each is not None]
        began = max(*(each.ended.at for each in cancels if each.ended is not None), *map(world.taken_up_at, told), 0.0)
        self.judged += 1
        late_s = exchange.sent.at - began - deadline_s - world.fell_behind_s(cancels[0].sent)
        if late_s <= world.slack_s or exchange.licence is not None:
            return
        late = self._late[operation.id] = self._late.get(operation.id, 0) + 1
        if late > 1 and self.first_time(operation.id):
            yield self.finding(
                f"{sent(exchange)} for {operation.id} is read {late} after the cancel deadline, which passed at "
                f"{seconds(exchange.sent.at - late_s)}: {seconds(late_s)} late. "
                "Stop polling at the deadline and record cancellation_unconfirmed.",
                cancels[-1].sent,
                exchange.sent,
            )

    @staticmethod
    def _is_accepted(cancel: Exchange) -> bool:
        return cancel.maybe_read and cancel.status is not None and 200 <= cancel.status < 300


@rule(id="cancel-unconfirmed-only-after-deadline", requirement="W6.5", needs=Needs.REPORT)
class CancelUnconfirmedOnlyAfterDeadline(DeadlineClaim):
    """``cancellation_unconfirmed`` is claimed or recorded only after the cancel deadline.

    Counted from the first stop command, the earliest that a client can count from.
    """

    state = "cancellation_unconfirmed"
    reaching = frozenset({state})
    deadline = "cancel_deadline_s"

    def began(self, operation: Operation) -> Entry | None:
        return operation.cancels[0] if operation.cancels else None


@rule(id="claims-name-the-job", requirement="W6.5", needs=Needs.REPORT)
class ClaimsNameTheJob(Rule):
    """A claim about an operation that has a job names the job.

    Whoever is to find out what became of it (a person, a support case, a later reconciliation) needs the provider's
    id above all.
    """

    reaching = frozenset(
        {
            "succeeded",
            "cancelled",
            "result_timed_out",
            "cancellation_unconfirmed",
            "result_unavailable",
            "result_validation_failed",
        }
    )

    def on_claimed(self, entry: Entry, fact: Claimed) -> Iterator[Finding]:
        if self.world.operation(fact.operation).decided is not None:
            return  # a person may decide so of an operation that never had a job
        self.judged += 1
        if fact.remote_job is None and self.first_time(fact.operation):
            yield self.finding(
                f"{fact.worker} claims {fact.operation} to be {fact.state} {at(entry)} and names no job. "
                "Keep the job id for as long as the record.",
                entry,
            )
