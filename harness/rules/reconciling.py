"""W3: after a time-out the state is unknown. It is kept, resolved by a path the provider offers, or given to a
person.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from fake_provider.contract import LookupBy, Mechanism
from fake_provider.facts import Endpoint, Fate
from harness.history import Claimed, Entry, StateRecorded
from harness.rules.creating import NoteBeforeRequest
from harness.rules.reached import StateReached
from harness.rules.registry import Needs, Rule, rule
from harness.rules.views import Exchange, Operation, is_ambiguous
from harness.rules.words import answered, at, sent
from harness.rules.world import World
from harness.verdict import Finding

__all__: list[str] = []


@rule(id="intent-before-outside-call", requirement="W3.1", needs=Needs.HISTORY)
class IntentBeforeOutsideCall(NoteBeforeRequest):
    """Between any two calls for an operation its history gains an entry.

    What was asked, what came back and what is done next must be on record before the next call leaves. A worker that
    dies in between leaves a successor who knows that something may have happened.
    """

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._before: dict[int, Exchange | None] = {}
        self._last: dict[str, Exchange] = {}

    def on_request(self, exchange: Exchange) -> Iterator[Finding]:
        name = exchange.operation
        if name is not None:
            self._before[exchange.request.exchange] = self._last.get(name)
            self._last[name] = exchange
        yield from super().on_request(exchange)

    def missing(self, exchange: Exchange, operation: Operation) -> bool:
        before = self._before[exchange.request.exchange]
        if before is None or before.redirected:
            return False  # record-before-request judges the first; following a redirect is no further call
        return operation.recorded is None or operation.recorded.seq < before.sent.seq

    def breach(self, exchange: Exchange, operation: Operation) -> Finding:
        before = self._before[exchange.request.exchange] or exchange
        return self.finding(
            f"{sent(exchange)} for {operation.id} left while its history told nothing of {sent(before)}, "
            f"{answered(before)}. "
            "Record each call and what came of it before the next one.",
            before.sent,
            exchange.sent,
        )


@rule(id="reconciles-by-offered-path", requirement="W3.2", needs=Needs.WIRE)
class ReconcilesByOfferedPath(Rule):
    """Look-ups use a path that the contract offers.

    An answer to a question the provider does not take proves nothing, and its 404 is no proof of absence.
    """

    endpoints = frozenset({Endpoint.LOOKUP})
    strays = True

    def on_answer(self, exchange: Exchange) -> Iterator[Finding]:
        answer = exchange.answer
        if answer is None or answer.status is None or answer.from_fault:
            return
        self.judged += 1
        offered = self.world.contract.lookup.by
        if answer.problem not in {"not_offered", "not-offered"} or not self.first_time(exchange.operation):
            return
        path = "no look-up" if offered is LookupBy.NONE else f"look-up {offered}"
        yield self.finding(
            f"{sent(exchange)} asked {exchange.request.path}, which the provider does not offer "
            f"({answered(exchange)}); "
            f"the contract offers {path}. Use what it offers, or ask a person.",
            exchange.sent,
            exchange.ended,
        )


@rule(id="human-decision-when-no-mechanism", requirement="W3.3", needs=Needs.REPORT)
class HumanDecisionWhenNoMechanism(Rule):
    """An uncertain create that the contract gives no means to resolve is claimed as ``human_decision_required``.

    Without idempotency and without a look-up nobody but a person can find out. To claim that it failed, or that it
    was withdrawn, is a guess about work that may be running.
    """

    def at_end(self) -> Iterator[Finding]:
        contract = self.world.contract
        if contract.idempotency.mechanism is not Mechanism.NONE or contract.lookup.by is not LookupBy.NONE:
            return
        for operation in self.world.operations.values():
            creates = operation.creates()
            if not creates or operation.decided or operation.events or not all(map(self._tells_nothing, creates)):
                continue
            for entry in operation.claims.values():
                claim = entry.fact
                if not isinstance(claim, Claimed) or not claim.at_rest:
                    continue
                self.judged += 1
                if claim.state != "human_decision_required" and self.first_time(operation.id, claim.state):
                    yield self.finding(
                        f"{claim.worker} claims {operation.id} to be {claim.state} {at(entry)}, but "
                        f"{sent(creates[-1])} was "
                        f"{answered(creates[-1])} and the contract has neither idempotency nor look-up. "
                        "Nobody can know: require a human decision.",
                        creates[-1].sent,
                        creates[-1].ended,
                        entry,
                    )

    @staticmethod
    def _tells_nothing(create: Exchange) -> bool:
        answer = create.answer
        if answer is None or not is_ambiguous(create):
            return False
        # Half an answer, or a conflict, may have named the job after all.
        return answer.fate in {Fate.LOST, Fate.RESET, Fate.ABANDONED} or (answer.status or 0) >= 500


USUAL_FAULTS: Final = frozenset(
    {
        "request_lost",
        "answer_lost",
        "connection_reset",
        "answer_cut",
        "slow_answer",
        "server_error",
        "too_many_requests",
        "conflict_in_progress",
        "retry_after",
    }
)
"""What every client of a provider meets, and what leaves no doubt that a re-send or a later read does not resolve."""


@rule(id="human-decision-only-if-stuck", requirement="W3.2", needs=Needs.REPORT)
class HumanDecisionOnlyIfStuck(StateReached):
    """``human_decision_required`` is recorded or claimed only where the client can go no further by itself.

    The create deadline has passed and nobody knows of a job; or the contract offers no way, or none any more, to find
    out; or the provider contradicted itself. A doubt that a re-send or a look-up resolves, and a job that takes long,
    are no business of a person; nor does it help to let the create deadline pass and try nothing. Judged where nothing
    but the usual happened to the operation: where workers die, where a stop is asked for, and where answers are odd, a
    client may well be at its wits' end.
    """

    reaching = frozenset({"human_decision_required"})

    def judge_state(self, entry: Entry, operation: Operation, said: str, _remote_job: str | None) -> Iterator[Finding]:
        world = self.world
        calls = [each for calls in operation.calls.values() for each in calls]
        told = operation.cancels or operation.decided or operation.changed or operation.asked
        odd = operation.elsewhere or operation.several or len(operation.naming) > 1
        if world.anyone_interrupted or told or odd or not operation.creates() or not all(map(self._is_usual, calls)):
            return
        self.judged += 1
        known = world.known_job(operation)
        if known is not None:
            why = f"{sent(known[1])} had named its job {known[0]}, and nothing odd was answered since"
        elif (path := self._path_left(entry, operation)) is not None:
            why = f"only its create is in doubt, last {sent(operation.creates()[-1])}, and {path} may resolve that"
        elif (path := self._path_untried(operation)) is not None:
            create = operation.creates()[0]
            why = f"{sent(create)} was {answered(create)} and nothing was tried since, though there was time for {path}"
        else:
            return
        if self.first_time(operation.id):
            yield self.finding(
                f"{said} human_decision_required for {operation.id} {at(entry)}, but {why}. Go on until a "
                "deadline passes or no way is left.",
                operation.creates()[-1].sent,
                entry,
            )

    @staticmethod
    def _is_usual(call: Exchange) -> bool:
        answer = call.answer
        if not USUAL_FAULTS.issuperset(call.faults):
            return False
        if answer is None or answer.status is None or answer.status >= 500 or answer.status in {408, 425, 429}:
            return True
        if answer.status == 409:
            return answer.problem == "request_in_progress"
        return answer.status < 300 and (answer.canonical_state is not None or call.request.job is not None)

    def _path_left(self, entry: Entry, operation: Operation) -> str | None:
        """What the client may still try before the create deadline, if anything."""
        contract, first = self.world.contract, operation.creates()[0].sent
        deadline = self._create_deadline(operation)
        if deadline is None or entry.at + self.world.one_try_s >= deadline:
            return None
        if (path := self._keyed_path(entry.at - first.at)) is not None:
            return path
        looked_up = any(each.status == 200 and each.maybe_read for each in operation.calls.get(Endpoint.LOOKUP, ()))
        return "a look-up" if contract.lookup.by is not LookupBy.NONE and not looked_up else None

    def _path_untried(self, operation: Operation) -> str | None:
        """What the client might have tried before the create deadline, if it let the time pass after its one create."""
        creates, deadline = operation.creates(), self._create_deadline(operation)
        if deadline is None or len(creates) > 1 or operation.calls.get(Endpoint.LOOKUP):
            return None
        free_at = max(creates[0].sent.at + self.world.time("request_timeout_s", 1), operation.held_until)
        if free_at + self.world.longest_wait_s > deadline:
            return None
        looks = self.world.contract.lookup.by is not LookupBy.NONE
        return self._keyed_path(free_at - creates[0].sent.at) or ("a look-up" if looks else None)

    def _keyed_path(self, age_s: float) -> str | None:
        """The re-send, if the token of the first create is known for long enough when it is so old."""
        keys = self.world.contract.idempotency
        is_known = keys.mechanism is not Mechanism.NONE and age_s + 2 * self.world.one_try_s < keys.key_lifetime_s
        return "a re-send with its token" if is_known else None

    def _create_deadline(self, operation: Operation) -> float | None:
        deadline_s = self.world.timing.get("create_deadline_s")
        return None if operation.submitted is None or deadline_s is None else operation.submitted.at + deadline_s


@rule(id="human-decision-is-explained", requirement="W3.3", needs=Needs.REPORT)
class HumanDecisionIsExplained(Rule):
    """A claim of ``human_decision_required`` says why.

    The person who is to decide needs to be told plainly what is not known and what was tried.
    """

    reaching = frozenset({"human_decision_required"})

    def on_claimed(self, entry: Entry, fact: Claimed) -> Iterator[Finding]:
        if fact.state != "human_decision_required":
            return
        self.judged += 1
        if not (fact.explanation or "").strip() and self.first_time(fact.operation):
            yield self.finding(
                f"{fact.worker} claims that {fact.operation} needs a human decision {at(entry)} and gives no "
                "explanation. "
                "Say what is not known, what was tried and why it went no further.",
                entry,
            )


class Conflict(NamedTuple):
    """Two job ids for one operation, and the answers that named them; it may have been one answer."""

    first: Exchange
    second: Exchange
    first_job: str
    second_job: str


class ConflictRule(Rule):
    """Common to rules about two job ids for one operation, both known to the client for certain."""

    def conflict(self, operation: Operation, *, by: str | None = None) -> Conflict | None:
        """The answers that named two different jobs for one token or one look-up, the earlier first."""
        for each in operation.several:
            if each.answer is not None and self.world.surely_read(each, by=by):
                return Conflict(each, each, *each.answer.jobs[:2])
        if len(operation.naming) < 2:
            return None
        known = [
            next((each for each in exchanges if self.world.surely_read(each, by=by)), None)
            for exchanges in operation.naming.values()
        ]
        told = sorted((each for each in known if each is not None), key=lambda each: each.sent.seq)
        if len(told) < 2 or len({each.request.token for each in told[:2] if each.request.token is not None}) > 1:
            return None
        first, second = told[:2]
        return Conflict(first, second, _job(first), _job(second))


def _job(exchange: Exchange) -> str:
    return (exchange.answer and exchange.answer.job) or ""


@rule(id="conflicting-job-ids-stop-everything", requirement="W3.4", needs=Needs.WIRE)
class ConflictingJobIdsStopEverything(ConflictRule):
    """After answers named two jobs for one token, or a look-up several, nothing more is sent for the operation.

    The provider broke its contract, and nobody knows which job answers for the work. Whatever is done next to either
    of them is a person's decision.
    """

    def on_request(self, exchange: Exchange) -> Iterator[Finding]:
        operation = self.world.operation(exchange.operation or "")
        told = self.conflict(operation, by=exchange.request.worker)
        if told is None or operation.decided is not None:  # a person knows of both, and answers for what follows
            return
        first, second, one, other = told
        self.judged += 1
        if operation.asked is not None and second.ended is not None and operation.asked.seq > second.ended.seq:
            return
        # A call that was on its way when the second answer came in is nobody's fault.
        if second.ended is None or exchange.sent.at <= second.ended.at + self.world.slack_s:
            return
        if self.first_time(operation.id):
            yield self.finding(
                f"{sent(exchange)} for {operation.id} goes out although {sent(first)} named "
                f"{one} and {sent(second)} named {other}. Keep both answers, stop, and require a human decision.",
                first.ended,
                second.ended,
                exchange.sent,
            )

    def at_end(self) -> Iterator[Finding]:
        self.judged += sum(self.conflict(operation) is not None for operation in self.world.operations.values())
        return iter(())


@rule(id="conflicting-job-ids-need-a-human", requirement="W3.4", needs=Needs.REPORT)
class ConflictingJobIdsNeedAHuman(ConflictRule):
    """An operation for which answers named several jobs is claimed as ``human_decision_required``.

    Unless it had reached its end before the second answer came.
    """

    def at_end(self) -> Iterator[Finding]:
        for operation in self.world.operations.values():
            told = self.conflict(operation)
            if told is None or operation.decided is not None:
                continue
            first, second, one, other = told
            ended_before = operation.terminal_read is not None and operation.terminal_read.sent.seq < second.sent.seq
            for entry in operation.claims.values():
                claim = entry.fact
                if ended_before or not isinstance(claim, Claimed):
                    continue
                self.judged += 1
                if claim.state != "human_decision_required" and self.first_time(operation.id):
                    yield self.finding(
                        f"{claim.worker} claims {operation.id} to be {claim.state} {at(entry)}, but {sent(first)} "
                        f"named {one} and {sent(second)} named {other}. "
                        "Keep both answers and require a human decision.",
                        first.ended,
                        second.ended,
                        entry,
                    )


@rule(id="remote-job-never-overwritten", requirement="W3.4", needs=Needs.HISTORY)
class RemoteJobNeverOverwritten(Rule):
    """The job id in a record is never replaced by another one without a human decision."""

    def on_recorded(self, entry: Entry, fact: StateRecorded) -> Iterator[Finding]:
        operation = self.world.operation(fact.operation)
        before = operation.remote_job_before
        if before is None or operation.decided is not None:
            return
        self.judged += 1
        if fact.remote_job in {None, before} or "human_decision_required" in {fact.before, fact.after}:
            return
        yield self.finding(
            f"{fact.worker} replaced job {before} in the record of {fact.operation} by {fact.remote_job} {at(entry)}. "
            "An unfamiliar job id is kept beside the first, and a person decides.",
            entry,
        )


@rule(id="absence-needs-authority", requirement="W3.2", needs=Needs.HISTORY)
class AbsenceNeedsAuthority(Rule):
    """``create_pending`` follows ``reconciliation`` only when an authoritative look-up found nothing.

    A look-up that lags behind finds nothing while the job runs; to start over on its word is to create twice.
    """

    reaching = frozenset({"create_pending"})

    def on_recorded(self, entry: Entry, fact: StateRecorded) -> Iterator[Finding]:
        if (fact.before, fact.after) != ("reconciliation", "create_pending"):
            return
        self.judged += 1
        operation = self.world.operation(fact.operation)
        if operation.absent is not None:
            return
        authority = (
            "" if self.world.contract.lookup.authoritative else ", and the contract calls no look-up authoritative"
        )
        yield self.finding(
            f"{fact.worker} recorded {fact.operation} as create_pending again {at(entry)}, but no look-up had proved "
            "that there is no "
            f"job{authority}. Stay in create_unknown until something proves it.",
            entry,
        )
