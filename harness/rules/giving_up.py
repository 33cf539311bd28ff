"""W7.1, W7.4, W7.6: a result is not given up while it can be had, nor lost once it is there.

What a result is worth that was taken is judged in ``collecting``.
"""

import math
from collections.abc import Iterator
from http import HTTPStatus

from fake_provider.contract import ResultKind
from fake_provider.facts import Endpoint
from harness.history import Claimed, Entry
from harness.rules.collecting import answers_with, result_reads
from harness.rules.reached import StateReached
from harness.rules.registry import Needs, Rule, rule
from harness.rules.views import Exchange, Operation, is_ambiguous
from harness.rules.words import answered, at, sent
from harness.verdict import Finding

__all__: list[str] = []


@rule(id="expired-link-renewed", requirement="W7.4", needs=Needs.REPORT)
class ExpiredLinkRenewed(StateReached):
    """A result is not recorded or claimed as unavailable for a link that has expired, or that nobody had given.

    The job's status holds a new one: who gives up without a look at it loses a result that is there. Judged where links
    are signed, nobody was interrupted or told to stop, no fault spoilt the link, and the result deadline leaves time
    for one try more. (How often other reads are tried ``unavailable-only-after-tries`` judges.)
    """

    reaching = frozenset({"result_unavailable"})

    def judge_state(self, entry: Entry, operation: Operation, said: str, _remote_job: str | None) -> Iterator[Finding]:
        reads = operation.calls.get(Endpoint.RESULT, [])
        if not reads or self.world.contract.result.kind is not ResultKind.SIGNED_URL:
            return
        if self._is_excused(entry, operation):
            return
        self.judged += 1
        last, why = reads[-1], None
        if self._problem(last) == "link_invalid" and not last.faults:
            why = "it went to an address that no answer had given"
        elif self._problem(last) == "link_expired" and not self._asked_again(operation, reads):
            why = "its link had expired, and the job was not read again for a new one"
        if why is None or not self.first_time(operation.id):
            return
        yield self.finding(
            f"{said} result_unavailable for {operation.id} {at(entry)}, but {sent(last)} was {answered(last)}: {why}. "
            "Take the link from the job's status, and a fresh one where it has expired.",
            last.sent,
            entry,
        )

    def _asked_again(self, operation: Operation, reads: list[Exchange]) -> bool:
        first = next(each for each in reads if self._problem(each) == "link_expired")
        return any(each.sent.seq > first.sent.seq for each in operation.calls.get(Endpoint.STATUS, ()))

    @staticmethod
    def _problem(read: Exchange) -> str | None:
        return None if read.answer is None else read.answer.problem

    def _is_excused(self, entry: Entry, operation: Operation) -> bool:
        world, began = self.world, operation.submitted
        told = operation.cancels or operation.decided or operation.changed or operation.asked or operation.elsewhere
        deadline_s = world.timing.get("result_deadline_s")
        if world.anyone_interrupted or told or began is None or deadline_s is None or operation.held_until > entry.at:
            return True
        return entry.at + world.one_try_s >= began.at + deadline_s


@rule(id="finished-result-not-lost", requirement="W7.1", needs=Needs.REPORT)
class FinishedResultNotLost(Rule):
    """A result that surely reached the client undamaged, or a success that it surely read, is not lost in the end.

    An operation whose success was read ends as succeeded, or as one of the states that say what became of its result;
    one whose result came through undamaged is not claimed to have none.
    """

    lost = frozenset({"result_unavailable", "result_validation_failed"})
    honest = frozenset({"succeeded", "human_decision_required", "result_collecting"})

    def on_claimed(self, entry: Entry, fact: Claimed) -> Iterator[Finding]:
        operation = self.world.operation(fact.operation)
        terminal = operation.terminal_read
        if operation.decided is not None or fact.state in {"result_collecting", "human_decision_required"}:
            return
        intact = next(
            (
                each
                for each in result_reads(operation)
                if self.world.intact(each) and not self._is_partial(each) and self.world.surely_read(each)
                if not self._lacks_annex(operation)
            ),
            self._inside(operation, fact.remote_job),
        )
        success = (
            terminal
            if terminal is not None
            and terminal.answer is not None
            and terminal.answer.canonical_state == "succeeded"
            and not terminal.answer.from_fault
            and self.world.surely_read(terminal)
            else None
        )
        proof = intact or success
        if proof is None or self._is_foreign(operation, proof):
            return
        self.judged += 1
        allowed = self.honest if intact is not None else self.honest | self.lost
        if fact.at_rest and fact.state not in allowed and self.first_time(fact.operation):
            what = "brought the result undamaged" if intact is not None else "showed that the job had succeeded"
            yield self.finding(
                f"{fact.worker} claims {fact.operation} to be {fact.state} {at(entry)}, although {sent(proof)} {what}. "
                "Record what came as soon as it came, and end where it leads.",
                proof.ended,
                entry,
            )

    def _inside(self, operation: Operation, remote_job: str | None) -> Exchange | None:
        """The answer that told the job's end and surely brought the result with it, if none that may have been read
        brought it damaged. In the answer to a look-up a client need not have looked for it.
        """
        job = self.world.truth(operation, remote_job)
        brought = answers_with(operation, job) if job is not None and self.world.inline(job) else []
        if any(kind.startswith("result_") for each in brought for kind in each.faults):
            return None
        told = (each for each in brought if each.answer is not None and self.world.tells_the_end(each.answer))
        return next((each for each in told if self.world.surely_read(each)), None)

    @staticmethod
    def _lacks_annex(operation: Operation) -> bool:
        """Whether what lies beside the result was asked for and did not come undamaged: then the rest is not whole."""
        last = operation.calls.get(Endpoint.ANNEX, [])[-1:]
        return any(
            each.status != 200 or not each.in_hand or any(kind.startswith("result_") for kind in each.faults)
            for each in last
        )

    def _is_partial(self, exchange: Exchange) -> bool:
        """Whether what came was what a job had done that ended early: it is no finished result."""
        job = self.world.jobs.get(exchange.result.job) if exchange.result is not None else None
        return job is not None and job.state in {"cancelled", "failed"}

    def _is_foreign(self, operation: Operation, exchange: Exchange) -> bool:
        """Whether what an exchange was about is another operation's job, so that it is right not to take it."""
        named = exchange.request.job or (exchange.answer and exchange.answer.job) or ""
        job = self.world.jobs.get(named)
        return job is not None and job.fact.operation not in {None, operation.id}


@rule(id="unavailable-only-after-tries", requirement="W7.6", needs=Needs.REPORT)
class UnavailableOnlyAfterTries(StateReached):
    """``result_unavailable`` is recorded or claimed only after the result was asked for, and was not to be had.

    That is so when the provider said it (404, 410 and their like), or when more than one try came to nothing; of a
    result that can be read once, one try is all there is. Judged where nobody was interrupted or told to stop, where
    no Retry-After held the client, and while the result deadline, which may end the tries, is far.
    """

    reaching = frozenset({"result_unavailable"})

    def judge_state(self, entry: Entry, operation: Operation, said: str, _remote_job: str | None) -> Iterator[Finding]:
        job = self.world.truth(operation, None)
        if job is None or self.world.inline(job) or self._is_excused(entry, operation):
            return
        self.judged += 1
        tries = [*operation.calls.get(Endpoint.RESULT, ()), *operation.calls.get(Endpoint.ANNEX, ())]
        tries += operation.elsewhere
        once = self.world.contract.result.kind is ResultKind.ONE_TIME
        last = tries[-1] if tries else None
        for_good = last is not None and not is_ambiguous(last) and last.status != HTTPStatus.TOO_MANY_REQUESTS
        if len(tries) > 1 or for_good or (once and tries) or not self.first_time(operation.id):
            return
        what = "it was never asked for"
        if last is not None:
            what = f"{sent(last)} was {answered(last)}, and it was not tried again"
        yield self.finding(
            f"{said} result_unavailable for {operation.id} {at(entry)}, but {what}. Ask for the result of {job.id} "
            "until it is there, the provider says that it is gone, or the time for it is over.",
            None if last is None else last.ended,
            entry,
        )

    def _is_excused(self, entry: Entry, operation: Operation) -> bool:
        world, began, success = self.world, operation.submitted, operation.shown.get("succeeded")
        if began is None or success is None or operation.cancels or operation.decided is not None:
            return True
        if world.anyone_interrupted:
            return True
        deadline = began.at + world.time("result_deadline_s", math.inf)
        if max(entry.at, operation.held_until) + world.longest_wait_s >= deadline or operation.held_until > entry.at:
            return True
        last = operation.calls.get(Endpoint.STATUS, ())[-1:]  # that after the success may say that the job is lost
        return any(each.sent.seq > success.seq and each.status != HTTPStatus.OK for each in last)
