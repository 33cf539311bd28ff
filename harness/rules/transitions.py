"""W5: transitions reject wishful thinking. Each state needs its evidence, and the history tells how it was reached."""

from collections.abc import Iterator
from typing import Final

from fake_provider.facts import Endpoint
from harness.history import Claimed, Commanded, Entry, StateRecorded
from harness.rules.local_states import EDGES, FINAL, REST_STATES, WAITING_FOR_A_PERSON, is_legal
from harness.rules.registry import Needs, Rule, rule
from harness.rules.views import (
    RETRYABLE_REJECTIONS,
    TERMINAL_STATES,
    Exchange,
    Operation,
    is_key_conflict,
    settles,
)
from harness.rules.words import answered, at, sent
from harness.rules.world import World
from harness.verdict import Finding

__all__: list[str] = []

RESULTLESS: Final = frozenset({"result_unavailable", "result_validation_failed"})
"""States that tell of a success and of no result."""


@rule(id="legal-transitions-only", requirement="W5.1", needs=Needs.HISTORY)
class LegalTransitionsOnly(Rule):
    """A record goes from one local state to another only along the table of transitions.

    What is not in the table is refused, and the record is left unchanged.
    """

    def on_recorded(self, entry: Entry, fact: StateRecorded) -> Iterator[Finding]:
        self.judged += 1
        if is_legal(fact.before, fact.after):
            return
        if fact.after not in EDGES:
            valid = f"{fact.after!r} is no local state; one of {', '.join(EDGES)}"
        elif fact.before is None:
            valid = "a record begins with create_pending"
        else:
            allowed = sorted(EDGES.get(fact.before, ()))
            valid = f"from {fact.before} the table allows {', '.join(allowed) or 'nothing: it is final'}"
        yield self.finding(
            f"{fact.worker} recorded {fact.operation} as going from {fact.before or 'no record'} to {fact.after} "
            f"{at(entry)} "
            f"({fact.cause}); {valid}.",
            entry,
        )


@rule(id="history-continuous", requirement="W5.3", needs=Needs.HISTORY)
class HistoryContinuous(Rule):
    """Each history entry begins where the one before it ended.

    A gap means that something was done and not recorded, or recorded and then changed.
    """

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._last: dict[str, Entry] = {}

    def on_recorded(self, entry: Entry, fact: StateRecorded) -> Iterator[Finding]:
        last = self._last.get(fact.operation)
        self._last[fact.operation] = entry
        before = self.world.operation(fact.operation).state_before
        if fact.before != before and self._note_may_be_lost(last):
            return
        self.judged += 1
        if fact.before == before:
            return
        yield self.finding(
            f"{fact.worker} recorded {fact.operation} as leaving {fact.before or 'no record'} {at(entry)}, but the "
            "entry before "
            f"{'left it without a record' if last is None else f'left it {before} ({at(last)})'}. "
            "Write the entry and the state in one transaction, and refuse a write by whoever read an older state.",
            last,
            entry,
        )

    def _note_may_be_lost(self, last: Entry | None) -> bool:
        """Whether a process died since, perhaps between its durable write and the note of it that we read."""
        since = -1 if last is None else last.seq
        return self.world.settle_s > 0 and any(
            worker.cut_after(since) is not None for worker in self.world.workers.values()
        )


@rule(id="entries-say-who-and-why", requirement="W5.3", needs=Needs.HISTORY)
class EntriesSayWhoAndWhy(Rule):
    """Each history entry names its actor, the request or answer that caused it, and the reason."""

    def on_recorded(self, entry: Entry, fact: StateRecorded) -> Iterator[Finding]:
        self.judged += 1
        missing = [name for name in ("actor", "cause", "reason") if not getattr(fact, name).strip()]
        if missing and self.first_time(fact.operation, *missing):
            yield self.finding(
                f"the entry of {fact.operation} to {fact.after} {at(entry)} has no {' and no '.join(missing)}. "
                "The history alone must tell who did what, and why.",
                entry,
            )


@rule(id="entries-name-the-job", requirement="W5.3", needs=Needs.HISTORY)
class EntriesNameTheJob(Rule):
    """From the moment a job id is recorded, each transition of the operation names it.

    An entry without the job id cannot be joined with what the provider knows.
    """

    def on_recorded(self, entry: Entry, fact: StateRecorded) -> Iterator[Finding]:
        before = self.world.operation(fact.operation).remote_job_before
        if before is None or fact.before == fact.after:
            return
        self.judged += 1
        if fact.remote_job is None and self.first_time(fact.operation):
            yield self.finding(
                f"the entry of {fact.operation} to {fact.after} {at(entry)} names no job, although {before} was "
                "recorded before. "
                "Carry the job id in every entry.",
                entry,
            )


@rule(id="rest-left-only-on-command", requirement="W5.1", needs=Needs.HISTORY)
class RestLeftOnlyOnCommand(Rule):
    """A state that waits for a person is left only after a person's command.

    These are ``human_decision_required``, ``result_unavailable`` and ``result_validation_failed``.
    """

    def on_recorded(self, entry: Entry, fact: StateRecorded) -> Iterator[Finding]:
        if fact.before not in WAITING_FOR_A_PERSON or fact.before == fact.after:
            return
        if fact.after == "human_decision_required":
            return  # a breach of contract that shows only now
        self.judged += 1
        operation = self.world.operation(fact.operation)
        entered = operation.recorded_states.get(fact.before)
        commands = [operation.asked, *operation.cancels[-1:]]
        told = [each for each in commands if each is not None]
        if entered is None or any(self._in_force(each, entered, operation) for each in told):
            return
        yield self.finding(
            f"{fact.worker} took {fact.operation} from {fact.before} to {fact.after} {at(entry)}, and nobody had "
            "commanded anything "
            f"since it got there ({at(entered)}). Wait for a person, and record who decided and why.",
            entered,
            entry,
        )

    def _in_force(self, command: Entry, entered: Entry, operation: Operation) -> bool:
        """Whether a command may be what ends the rest: one given since, or one that had not been taken up by then."""
        if command.seq > entered.seq or self._busy_until(operation, command) + self.world.slack_s >= entered.at:
            return True
        told = command.fact
        return isinstance(told, Commanded) and self.world.worker(told.worker).cut_after(command.seq) is not None

    def _busy_until(self, operation: Operation, since: Entry) -> float:
        """Until when one call followed upon another for the operation, from a moment on: a client may take nothing up
        meanwhile.
        """
        calls = sorted((call for each in operation.calls.values() for call in each), key=lambda call: call.sent.seq)
        busy_until = since.at
        for call in calls:
            if call.sent.at <= busy_until + self.world.slack_s:
                waits_until = call.sent.at + self.world.time("request_timeout_s", 1)
                heard = call.ended is not None and call.in_hand
                busy_until = max(busy_until, call.ended.at if heard and call.ended is not None else waits_until)
        return busy_until


@rule(id="no-call-at-rest", requirement="W5.1", needs=Needs.HISTORY)
class NoCallAtRest(Rule):
    """No call goes out for an operation that is recorded as final, or as waiting for a person who has not spoken.

    What the record says is what is done. (A webhook may bring an operation whose deadline has passed one more read.)
    """

    def on_request(self, exchange: Exchange) -> Iterator[Finding]:
        operation = self.world.operation(exchange.operation or "")
        state = operation.state
        if state not in REST_STATES:
            return
        entered = operation.recorded_states[state]
        commands = [operation.asked, *operation.cancels[-1:]]
        # A command that came at that very moment may be taken up just after it.
        since = entered.at - self.world.slack_s
        spoken = any(each is not None and (each.seq > entered.seq or each.at >= since) for each in commands)
        if state not in FINAL and (spoken or exchange.licence is not None or operation.licence is not None):
            return
        self.judged += 1
        if exchange.sent.at > entered.at + self.world.settle_s and self.first_time(operation.id, state):
            yield self.finding(
                f"{sent(exchange)} goes out for {operation.id}, which is on record as {state} since {at(entered)[3:]}. "
                "At rest nothing is done until someone acts.",
                entered,
                exchange.sent,
            )

    def at_end(self) -> Iterator[Finding]:
        self.judged += sum(operation.state in REST_STATES for operation in self.world.operations.values())
        return iter(())


@rule(id="claimed-rest-is-kept", requirement="W5.1", needs=Needs.REPORT)
class ClaimedRestIsKept(Rule):
    """A worker that claims an operation to be final, or to wait for a person, sends nothing more for it.

    Whoever was told so looks into it, or has gone on to something else. Only a person's command, or a webhook, brings
    it back. Judged by what one worker said and then did, undisturbed in between. (What is on record ``no-call-at-rest``
    judges.)
    """

    def on_claimed(self, _entry: Entry, fact: Claimed) -> Iterator[Finding]:
        self.judged += fact.state in FINAL or fact.state in WAITING_FOR_A_PERSON
        return iter(())

    def on_request(self, exchange: Exchange) -> Iterator[Finding]:
        worker, operation = exchange.request.worker, self.world.operation(exchange.operation or "")
        said = operation.claims.get(worker)
        if said is None or not isinstance(said.fact, Claimed):
            return
        state = said.fact.state
        if state not in FINAL and state not in WAITING_FOR_A_PERSON:
            return
        commands = [operation.asked, operation.submitted_again, *operation.cancels[-1:]]
        spoken = any(each is not None and each.seq > said.seq for each in commands)
        told = exchange.licence is not None or operation.licence is not None
        late = exchange.sent.at > said.at + self.world.settle_s + self.world.slack_s
        if spoken or told or not late or not self.world.undisturbed(worker, said):
            return
        if self.first_time(operation.id, state):
            yield self.finding(
                f"{sent(exchange)} goes out for {operation.id}, which {worker} claimed to be {state} {at(said)}, and "
                "nobody has said anything since. At rest nothing is done until someone acts.",
                said,
                exchange.sent,
            )


@rule(id="claims-match-history", requirement="W5.4", needs=Needs.HISTORY)
class ClaimsMatchHistory(Rule):
    """What a client claims when it is asked is what its last history entry says.

    The status that people see is no record of its own.
    """

    def on_claimed(self, entry: Entry, fact: Claimed) -> Iterator[Finding]:
        operation = self.world.operation(fact.operation)
        recorded = operation.recorded
        if recorded is None or not fact.at_rest or entry.at - recorded.at < self.world.settle_s:
            return
        self.judged += 1
        if fact.state != operation.state and self.first_time(fact.operation):
            yield self.finding(
                f"{fact.worker} claims {fact.operation} to be {fact.state} {at(entry)}, but the last entry in its "
                "history left it "
                f"{operation.state} ({at(recorded)}). Answer from the durable record.",
                recorded,
                entry,
            )


class EvidenceRule(Rule):
    """Common to rules by which a final state, recorded or claimed, needs evidence."""

    advice: str

    def has_evidence(self, operation: Operation) -> bool:
        """Whether the state may be believed."""
        raise NotImplementedError

    def on_recorded(self, entry: Entry, fact: StateRecorded) -> Iterator[Finding]:
        yield from self._judge(entry, fact.operation, fact.after, f"{fact.worker} recorded", fact.remote_job)

    def on_claimed(self, entry: Entry, fact: Claimed) -> Iterator[Finding]:
        yield from self._judge(entry, fact.operation, fact.state, f"{fact.worker} claims", fact.remote_job)

    def _judge(self, entry: Entry, name: str, state: str, said: str, remote_job: str | None) -> Iterator[Finding]:
        operation = self.world.operation(name)
        self.judged += 1
        if operation.decided is not None or self.has_evidence(operation) or not self.first_time(name):
            return
        job = self.world.truth(operation, remote_job)
        truth = "the provider has no job for it" if job is None else f"its job {job.id} is {job.state} at the provider"
        last = operation.last_call
        call = "nothing was ever sent for it" if last is None else f"the last call, {sent(last)}, was {answered(last)}"
        yield self.finding(
            f"{said} {state} for {name} {at(entry)}, without evidence: {truth}, and {call}. {self.advice}",
            None if last is None else last.ended or last.sent,
            None if job is None else job.moved or job.created,
            entry,
        )


@rule(id="succeeded-only-if-remote-succeeded", requirement="W5.1", needs=Needs.REPORT)
class SucceededOnlyIfRemoteSucceeded(EvidenceRule):
    """Success is recorded or claimed only after an answer showed that the job succeeded.

    Not from progress 100, not from a status nobody knows, not because time has passed. To say that there is no result,
    or that it is none to be believed, is to say that there should be one. (After a webhook alone,
    ``final-read-before-success`` judges.)
    """

    reaching = frozenset({"result_collecting", "result_unavailable", "result_validation_failed", "succeeded"})
    advice = "Only the terminal state succeeded, read from the provider, is success."

    def has_evidence(self, operation: Operation) -> bool:
        return "succeeded" in operation.shown or "job.succeeded" in operation.events

    def _judge(self, entry: Entry, name: str, state: str, said: str, remote_job: str | None) -> Iterator[Finding]:
        ended_early = {"cancelled", "failed"} & self.world.operation(name).shown.keys()
        if state in RESULTLESS and self.world.contract.result.partial and ended_early:
            return  # what was done until then is a result that can be missing, too
        yield from super()._judge(entry, name, state, said, remote_job)


@rule(id="failed-only-if-remote-failed", requirement="W4.5", needs=Needs.REPORT)
class FailedOnlyIfRemoteFailed(EvidenceRule):
    """Failure is recorded or claimed only after the provider reported it, or definitely rejected the create.

    A failed poll is no failed job, and a create that was not answered may have worked; that its token is taken, as its
    retry is told, is no rejection either, and a 403 or 404 of a retry says nothing of the attempt before it. A status
    read that finds no such job counts as a report once the time is over in which a new job may not be found yet.
    """

    reaching = frozenset({"failed"})
    advice = "Keep the operation as unknown or observed until the provider says that it failed."

    def has_evidence(self, operation: Operation) -> bool:
        if "failed" in operation.shown or "job.failed" in operation.events:
            return True
        if any(self._rejects(each) and settles(operation, each) for each in operation.creates()):
            return True
        return any(self._finds_nothing(operation, each) for each in operation.calls.get(Endpoint.STATUS, ()))

    @staticmethod
    def _rejects(create: Exchange) -> bool:
        status = create.status
        unclear = RETRYABLE_REJECTIONS - {401, 403}
        refused = create.maybe_read and status is not None and 400 <= status < 500 and status not in unclear
        return refused and not (is_key_conflict(create) and create.previous is not None)

    def _finds_nothing(self, operation: Operation, read: Exchange) -> bool:
        if not read.maybe_read or read.status not in {404, 410}:
            return False
        accepted = operation.jobs[0].created.at if operation.jobs else read.sent.at
        return read.sent.at > accepted + self.world.contract.status.not_found_grace_s


@rule(id="cancelled-only-if-confirmed", requirement="W5.1", needs=Needs.REPORT)
class CancelledOnlyIfConfirmed(EvidenceRule):
    """``cancelled`` is recorded or claimed only after the provider said that the job is cancelled.

    To have sent a cancel call proves nothing, nor does an answer that only says "accepted": completion may win.
    """

    reaching = frozenset({"cancelled"})
    advice = "Observe on after the cancel call, until the provider reports how the job ended."

    def has_evidence(self, operation: Operation) -> bool:
        return "cancelled" in operation.shown or "job.cancelled" in operation.events


@rule(id="end-that-was-read-is-claimed", requirement="W4.5", needs=Needs.REPORT)
class EndThatWasReadIsClaimed(Rule):
    """An operation whose job was surely read to have failed, or to be cancelled, is claimed as that.

    A terminal state steers the workflow, whether it was waited for or not: a failure after a cancel, a cancel by the
    provider. Who drops it waits for what cannot come, and tells at the deadline that nobody knows. Judged where one
    worker made the read and went on undisturbed, and the provider took nothing back. (Of a success that was read
    ``finished-result-not-lost`` judges.)
    """

    ends = frozenset({"cancelled", "failed"})

    def on_claimed(self, entry: Entry, fact: Claimed) -> Iterator[Finding]:
        operation = self.world.operation(fact.operation)
        read = operation.terminal_read
        state = self._told(operation)
        if read is None or state is None or not fact.at_rest or operation.decided is not None:
            return
        self.judged += 1
        if fact.state not in {state, "human_decision_required"} and self.first_time(fact.operation):
            yield self.finding(
                f"{fact.worker} claims {fact.operation} to be {fact.state} {at(entry)}, although {sent(read)} had "
                f"shown that its job was {state}. Record the end that was read, whichever it is.",
                read.ended,
                entry,
            )

    def _told(self, operation: Operation) -> str | None:
        """The end that the client surely knows, if it is one of these."""
        world, read = self.world, operation.terminal_read
        if read is None or read.answer is None or read.answer.from_fault or not world.surely_read(read):
            return None
        states = operation.shown.keys() & TERMINAL_STATES
        odd = len(states) > 1 or len(operation.naming) > 1 or operation.several
        job = world.jobs.get(read.request.job or read.answer.job or "")
        foreign = job is not None and job.fact.operation not in {None, operation.id}
        # Whoever was interrupted over the read may have come back without the lease, or with another time of day.
        if odd or foreign or world.clocks_were_set or not world.undisturbed(read.request.worker, read.sent):
            return None
        return read.answer.canonical_state if read.answer.canonical_state in self.ends else None


@rule(id="withdrawn-only-if-never-sent", requirement="W5.1", needs=Needs.REPORT)
class WithdrawnOnlyIfNeverSent(EvidenceRule):
    """``withdrawn`` is recorded or claimed only if no create was ever sent, and somebody said to stop.

    After the first create there may be a job, answered or not, and withdrawing does not stop it. What nobody wanted
    stopped is to be done: an operation that is dropped in silence is lost.
    """

    reaching = frozenset({"withdrawn"})
    advice = (
        "Only a stop command that comes before the first create withdraws an operation. One that comes later waits "
        "until the job is known, and then cancels it; if there proves to be none, a person decides."
    )

    def has_evidence(self, operation: Operation) -> bool:
        told = operation.cancels or operation.changed is not None or operation.submitted is None
        return bool(told) and not operation.creates()
