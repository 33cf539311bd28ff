"""W7: collecting the result is a separate action, and a 200 is not validation."""

from collections.abc import Iterator
from typing import ClassVar, Final

from fake_provider.contract import ResultKind
from fake_provider.facts import Endpoint
from harness.history import Claimed, Entry
from harness.rules.reached import StateReached
from harness.rules.registry import Needs, Rule, rule
from harness.rules.views import Exchange, Job, Operation
from harness.rules.words import answered, at, sent
from harness.verdict import Finding

__all__: list[str] = []

INLINE: Final = (Endpoint.CREATE, Endpoint.LOOKUP, Endpoint.STATUS)
"""Calls whose answers may hold a result inside."""


class SuccessRule(StateReached):
    """Common to rules on what must be true when an operation is recorded or claimed as succeeded."""

    reaching = frozenset({"succeeded"})
    inline_too: ClassVar[bool] = False  # whether results that come inside an answer are judged as well

    def judge_state(self, entry: Entry, operation: Operation, said: str, remote_job: str | None) -> Iterator[Finding]:
        job = self.world.truth(operation, remote_job)
        if job is not None and operation.decided is None and (self.inline_too or not self.world.inline(job)):
            yield from self.judge_success(entry, operation, job, f"{said} success for {operation.id} {at(entry)}")

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
