"""W7: collecting the result is a separate action, and a 200 is not validation."""

import math
from collections.abc import Iterator
from http import HTTPStatus
from typing import ClassVar, Final

from fake_provider.contract import ResultKind
from fake_provider.facts import Endpoint
from harness.history import Claimed, Entry, StateRecorded
from harness.rules.registry import Needs, Rule, rule
from harness.rules.views import Exchange, Job, Operation, is_ambiguous
from harness.rules.words import answered, at, sent
from harness.verdict import Finding

__all__: list[str] = []

INLINE: Final = (Endpoint.CREATE, Endpoint.LOOKUP, Endpoint.STATUS)
"""Calls whose answers may hold a result inside."""


class SuccessRule(Rule):
    """Common to rules on what must be true when an operation is recorded or claimed as succeeded."""

    reaching = frozenset({"succeeded"})
    inline_too: ClassVar[bool] = False  # whether results that come inside an answer are judged as well

    def on_recorded(self, entry: Entry, fact: StateRecorded) -> Iterator[Finding]:
        if fact.after == "succeeded" != fact.before:
            yield from self._judge(entry, fact.operation, f"{fact.worker} recorded", fact.remote_job)

    def on_claimed(self, entry: Entry, fact: Claimed) -> Iterator[Finding]:
        if fact.state == "succeeded":
            yield from self._judge(entry, fact.operation, f"{fact.worker} claims", fact.remote_job)

    def _judge(self, entry: Entry, name: str, said: str, remote_job: str | None) -> Iterator[Finding]:
        operation = self.world.operation(name)
        job = self.world.truth(operation, remote_job)
        if job is not None and operation.decided is None and (self.inline_too or not self.world.inline(job)):
            yield from self.judge_success(entry, operation, job, f"{said} success for {name} {at(entry)}")

    def judge_success(self, entry: Entry, operation: Operation, job: Job, said: str) -> Iterator[Finding]:
        """``operation`` is said to have succeeded, with a result that had to be fetched (or, ``inline_too``, not)."""
        raise NotImplementedError


GLARING: Final = frozenset({"result_cut_short", "result_error_row"})
"""Damage that shows by itself, whatever is stated."""


def answers_with(operation: Operation, job: Job) -> list[Exchange]:
    """The answers that told of the job's success, with its result inside, and that the client may have read."""
    calls = [each for endpoint in INLINE for each in operation.calls.get(endpoint, ())]
    return [
        each
        for each in calls
        if each.maybe_read and each.answer is not None and each.answer.canonical_state == "succeeded"
        if each.answer.job == job.id
    ]


def result_reads(operation: Operation) -> list[Exchange]:
    """The result reads whose 200 the client may have read, at the provider or where it was redirected to."""
    reads = [*operation.calls.get(Endpoint.RESULT, ()), *operation.elsewhere]
    return [each for each in reads if each.maybe_read and each.status == 200]


@rule(id="result-retrieved-before-success", requirement="W7.6", needs=Needs.REPORT)
class ResultRetrievedBeforeSuccess(SuccessRule):
    """Success is recorded or claimed only after the result was retrieved.

    Remote success does not mean that anybody has the result; some can be fetched only for a while.
    """

    def judge_success(self, entry: Entry, operation: Operation, job: Job, said: str) -> Iterator[Finding]:
        self.judged += 1
        if not result_reads(operation) and self.first_time(operation.id):
            tried = operation.calls.get(Endpoint.RESULT, ())
            what = f"{sent(tried[-1])} was {answered(tried[-1])}" if tried else "no result was ever asked for"
            yield self.finding(
                f"{said}, but {what}. Retrieve and validate the result of {job.id} first.",
                tried[-1].ended if tried else None,
                entry,
            )


@rule(id="harmed-result-not-taken", requirement="W7.2", needs=Needs.REPORT)
class HarmedResultNotTaken(SuccessRule):
    """A result that does not match what the provider states of it is not taken for success.

    One result read at least, or one answer with the result inside, must have brought it undamaged, or damaged so that
    nothing stated gives it away: without a checksum a changed character shows nowhere. That a result ends halfway or
    holds an error row, whoever reads it sees.
    """

    inline_too = True

    def judge_success(self, entry: Entry, operation: Operation, job: Job, said: str) -> Iterator[Finding]:
        inline = self.world.inline(job)
        fetched = [each for each in result_reads(operation) if each.result is not None]
        reads = answers_with(operation, job) if inline else fetched
        if not reads or job.result_sha256 is None:
            return
        self.judged += 1
        if not all(self._is_harmed(each, inline=inline) for each in reads) or not self.first_time(operation.id):
            return
        served, faults = reads[-1].result, ", ".join(reads[-1].faults)
        brought = "" if served is None else f" brought sha256 {served.sha256}"
        yield self.finding(
            f"{said}, but each result that came was damaged: {sent(reads[-1])}{brought}"
            f"{faults and f' ({faults})'}, and that of the provider has sha256 {job.result_sha256}. "
            "Compare checksum, size, type and count before you believe a result.",
            reads[-1].ended,
            entry,
        )

    def _is_harmed(self, read: Exchange, *, inline: bool) -> bool:
        """Whether a result came damaged, so that it can be seen by what the contract has the provider state."""
        stated = self.world.contract.result
        if stated.checksum and not inline:
            return not self.world.intact(read)
        return any(
            kind in GLARING
            or (kind.startswith("result_") and stated.checksum)
            or (kind == "result_records_missing" and (stated.record_count or stated.size))
            for kind in read.faults
        )


class ClaimOfSuccess(Rule):
    """Common to rules on the figures in a claim of success."""

    reaching = frozenset({"succeeded"})

    def on_claimed(self, entry: Entry, fact: Claimed) -> Iterator[Finding]:
        operation = self.world.operation(fact.operation)
        job = self.world.truth(operation, fact.remote_job)
        if (
            fact.state == "succeeded"
            and job is not None
            and job.result_sha256 is not None
            and operation.decided is None
        ):
            yield from self.judge_claim(entry, fact, operation, job)

    def judge_claim(self, entry: Entry, claim: Claimed, operation: Operation, job: Job) -> Iterator[Finding]:
        """``claim`` is of the success of ``job``."""
        raise NotImplementedError

    def last_was_intact(self, operation: Operation, job: Job) -> bool:
        """Whether what the client read last was the result as the provider has it, so that its figures can be held
        to it.
        """
        reads = result_reads(operation)
        if reads:
            return self.world.intact(reads[-1])
        calls = (each for calls in operation.calls.values() for each in calls)
        harmed = any(kind.startswith("result_") for each in calls for kind in each.faults)
        return self.world.inline(job) and not harmed


@rule(id="result-matches-provider", requirement="W7.3", needs=Needs.REPORT)
class ResultMatchesProvider(ClaimOfSuccess):
    """The checksum in a claim of success is that of the provider's result."""

    def judge_claim(self, entry: Entry, claim: Claimed, operation: Operation, job: Job) -> Iterator[Finding]:
        if claim.result_sha256 is None or not (
            self.world.contract.result.checksum or self.last_was_intact(operation, job)
        ):
            return
        self.judged += 1
        if claim.result_sha256.removeprefix("sha256:").lower() != job.result_sha256 and self.first_time(operation.id):
            yield self.finding(
                f"{claim.worker} claims success for {operation.id} {at(entry)} with a result of sha256 "
                f"{claim.result_sha256}; that of "
                f"{job.id} is {job.result_sha256}. Hash the body as received, and compare it with what the provider "
                "states.",
                job.moved,
                entry,
            )


@rule(id="failed-items-reported", requirement="W7.5", needs=Needs.REPORT)
class FailedItemsReported(ClaimOfSuccess):
    """Where items of a successful job failed, the claim says how many.

    498 succeeded and 2 failed is not 500 succeeded.
    """

    def judge_claim(self, entry: Entry, claim: Claimed, operation: Operation, job: Job) -> Iterator[Finding]:
        if not job.failed_items or not self.last_was_intact(operation, job):
            return
        self.judged += 1
        if claim.failed_items != job.failed_items and self.first_time(operation.id):
            said = (
                "says nothing of failed items" if claim.failed_items is None else f"counts {claim.failed_items} failed"
            )
            yield self.finding(
                f"{claim.worker} claims success for {operation.id} {at(entry)} and {said}; of the {job.records} items "
                f"of {job.id} "
                f"{job.failed_items} failed. Read the outcome of each item, and report the counts.",
                job.moved,
                entry,
            )


@rule(id="counts-add-up", requirement="W7.5", needs=Needs.REPORT)
class CountsAddUp(ClaimOfSuccess):
    """The number of items in a claim of success is that of the result, and no more failed than there are."""

    def judge_claim(self, entry: Entry, claim: Claimed, operation: Operation, job: Job) -> Iterator[Finding]:
        if claim.records is None or job.records is None or not self.last_was_intact(operation, job):
            return
        self.judged += 1
        right = claim.records == job.records and (claim.failed_items or 0) <= claim.records
        # Without failures a client may leave the count out; with a count that is wrong it misleads.
        invented = not job.failed_items and bool(claim.failed_items)
        if (not right or invented) and self.first_time(operation.id):
            yield self.finding(
                f"{claim.worker} claims success for {operation.id} {at(entry)} with {claim.records} items, "
                f"{claim.failed_items or 0} "
                f"failed; the result of {job.id} has {job.records}, {job.failed_items or 0} failed. Count what was "
                "retrieved.",
                job.moved,
                entry,
            )


@rule(id="one-time-result-read-once", requirement="W7.4", needs=Needs.WIRE)
class OneTimeResultReadOnce(Rule):
    """A result that can be read once is not read again after it surely came through.

    The second read gets nothing, and a client that believes it loses what it had.
    """

    endpoints = frozenset({Endpoint.RESULT})

    def on_request(self, exchange: Exchange) -> Iterator[Finding]:
        if self.world.contract.result.kind is not ResultKind.ONE_TIME:
            return
        operation = self.world.operation(exchange.operation or "")
        self.judged += 1
        before = next(
            (
                each
                for each in operation.calls[Endpoint.RESULT]
                if self.world.intact(each) and self.world.surely_read(each, by=exchange.request.worker)
            ),
            None,
        )
        if before is not None and operation.decided is None and self.first_time(operation.id):
            yield self.finding(
                f"{sent(exchange)} for {operation.id} reads a one-time result again: {sent(before)} was "
                f"{answered(before)}, "
                "undamaged. There may be no second time: store what came as soon as it came, and never ask again.",
                before.ended,
                exchange.sent,
            )


@rule(id="expired-link-renewed", requirement="W7.4", needs=Needs.REPORT)
class ExpiredLinkRenewed(Rule):
    """A result is not recorded or claimed as unavailable for a link that has expired, or that nobody had given.

    The job's status holds a new one: who gives up without a look at it loses a result that is there. Judged where links
    are signed, nobody was interrupted or told to stop, no fault spoilt the link, and the result deadline leaves time
    for one try more. (How often other reads are tried ``unavailable-only-after-tries`` judges.)
    """

    reaching = frozenset({"result_unavailable"})

    def on_recorded(self, entry: Entry, fact: StateRecorded) -> Iterator[Finding]:
        if fact.before != fact.after:
            yield from self._judge(entry, fact.operation, f"{fact.worker} recorded")

    def on_claimed(self, entry: Entry, fact: Claimed) -> Iterator[Finding]:
        yield from self._judge(entry, fact.operation, f"{fact.worker} claims")

    def _judge(self, entry: Entry, name: str, said: str) -> Iterator[Finding]:
        operation = self.world.operation(name)
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
        if why is None or not self.first_time(name):
            return
        yield self.finding(
            f"{said} result_unavailable for {name} {at(entry)}, but {sent(last)} was {answered(last)}: {why}. "
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
        interrupted = world.clocks_were_set or any(worker.cut_seqs for worker in world.workers.values())
        told = operation.cancels or operation.decided or operation.changed or operation.asked or operation.elsewhere
        deadline_s = world.timing.get("result_deadline_s")
        if interrupted or told or began is None or deadline_s is None or operation.held_until > entry.at:
            return True
        one_try_s = world.time("poll_cap_s", 2) * (1 + world.time("poll_jitter", 0.1))
        return entry.at + one_try_s + world.time("request_timeout_s", 1) >= began.at + deadline_s


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
class UnavailableOnlyAfterTries(Rule):
    """``result_unavailable`` is recorded or claimed only after the result was asked for, and was not to be had.

    That is so when the provider said it (404, 410 and their like), or when more than one try came to nothing; of a
    result that can be read once, one try is all there is. Judged where nobody was interrupted or told to stop, where
    no Retry-After held the client, and while the result deadline, which may end the tries, is far.
    """

    reaching = frozenset({"result_unavailable"})

    def on_recorded(self, entry: Entry, fact: StateRecorded) -> Iterator[Finding]:
        if fact.before != fact.after:
            yield from self._judge(entry, fact.operation, f"{fact.worker} recorded")

    def on_claimed(self, entry: Entry, fact: Claimed) -> Iterator[Finding]:
        yield from self._judge(entry, fact.operation, f"{fact.worker} claims")

    def _judge(self, entry: Entry, name: str, said: str) -> Iterator[Finding]:
        operation = self.world.operation(name)
        job = self.world.truth(operation, None)
        if job is None or self.world.inline(job) or self._is_excused(entry, operation):
            return
        self.judged += 1
        tries = [*operation.calls.get(Endpoint.RESULT, ()), *operation.calls.get(Endpoint.ANNEX, ())]
        tries += operation.elsewhere
        once = self.world.contract.result.kind is ResultKind.ONE_TIME
        last = tries[-1] if tries else None
        for_good = last is not None and not is_ambiguous(last) and last.status != HTTPStatus.TOO_MANY_REQUESTS
        if len(tries) > 1 or for_good or (once and tries) or not self.first_time(name):
            return
        what = "it was never asked for"
        if last is not None:
            what = f"{sent(last)} was {answered(last)}, and it was not tried again"
        yield self.finding(
            f"{said} result_unavailable for {name} {at(entry)}, but {what}. Ask for the result of {job.id} until it is "
            "there, the provider says that it is gone, or the time for it is over.",
            None if last is None else last.ended,
            entry,
        )

    def _is_excused(self, entry: Entry, operation: Operation) -> bool:
        world, began, success = self.world, operation.submitted, operation.shown.get("succeeded")
        if began is None or success is None or operation.cancels or operation.decided is not None:
            return True
        if world.clocks_were_set or any(worker.cut_seqs for worker in world.workers.values()):
            return True
        deadline = began.at + world.time("result_deadline_s", math.inf)
        if max(entry.at, operation.held_until) + world.longest_wait_s >= deadline or operation.held_until > entry.at:
            return True
        last = operation.calls.get(Endpoint.STATUS, ())[-1:]  # that after the success may say that the job is lost
        return any(each.sent.seq > success.seq and each.status != HTTPStatus.OK for each in last)
