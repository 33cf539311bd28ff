"""What must come about in the end: after the faults are healed and the world has drained, every operation rests
and adds up.
"""

from collections.abc import Iterator
from typing import Final

from fake_provider.contract import Mechanism
from harness.history import Claimed, Commanded, Entry, LedgerRead
from harness.rules.registry import Needs, Rule, rule
from harness.rules.views import Exchange, Operation, is_key_conflict, is_rejection, settles
from harness.rules.words import answered, at, seconds, sent
from harness.rules.world import World
from harness.verdict import Finding

__all__: list[str] = []

PATIENCE: Final = 3
"""How many times over a client may need its longest wait, once nothing disturbs it, before it counts as stuck."""


def claims_of(operation: Operation) -> list[tuple[Entry, Claimed]]:
    """The last claim of each worker about an operation."""
    return [(entry, entry.fact) for entry in operation.claims.values() if isinstance(entry.fact, Claimed)]


def misled(operation: Operation, claim: Claimed) -> bool:
    """Whether the job id in a claim came out of an answer that a fault had made."""
    told = operation.naming.get(claim.remote_job or "", ())
    return any(each.answer is not None and each.answer.from_fault for each in told)


def due_at(world: World, operation: Operation) -> float:
    """When an operation must have come to rest, whatever a client may rightly have waited for."""
    begin = 0.0 if world.healed is None else world.healed.at
    commands = [operation.submitted, operation.asked, *operation.cancels[-1:]]
    told = max((entry.at for entry in commands if entry is not None), default=0.0)
    patience_s = PATIENCE * world.longest_wait_s
    clocks_s = [world.timing.get(f"{name}_deadline_s", 0.0) for name in ("create", "result", "cancel")]
    patience_s += 0.0 if operation.submitted is None else world.fell_behind_s(operation.submitted)
    due = max(begin, told + sum(clocks_s)) + patience_s
    job = operation.jobs[0] if len(operation.jobs) == 1 else None
    if job is not None and job.terminal and job.moved is not None:
        known = world.known_job(operation)
        if known is not None and known[1].ended is not None:
            since = max(begin, told, job.moved.at, known[1].ended.at, operation.held_until)
            due = min(due, since + patience_s)
    return due


@rule(id="reaches-rest-after-faults-stop", requirement="W9.1", needs=Needs.REPORT)
class ReachesRestAfterFaultsStop(Rule):
    """Once the faults are healed, every operation comes to rest: final, or waiting for a person.

    Judged once all of the operation's deadlines have passed since, or once its job has ended and the client had
    several times as long as it may wait between two steps. Until then it may rightly be waiting.
    """

    def at_end(self) -> Iterator[Finding]:
        ended = self.world.ended
        if ended is None or not self.world.claims_made:
            return
        for operation in self.world.operations.values():
            claims = claims_of(operation)
            moving = [(entry, claim) for entry, claim in claims if not claim.at_rest]
            if claims and not moving:
                self.judged += 1
                continue
            if not moving or ended.at < due_at(self.world, operation):
                continue
            self.judged += 1
            entry, claim = moving[0]
            last = operation.last_call
            call = "it sent nothing" if last is None else f"its last call, {sent(last)}, was {answered(last)}"
            yield self.finding(
                f"{operation.id} is still {claim.state} {at(entry)}"
                + (
                    ""
                    if self.world.healed is None
                    else f", {seconds(entry.at - self.world.healed.at)} after the faults were healed"
                )
                + f"; {call}. Every operation must end, or say what it waits for.",
                None if last is None else last.sent,
                self.world.healed,
                entry,
            )


@rule(id="every-operation-is-claimed", requirement="W1.1", needs=Needs.REPORT)
class EveryOperationIsClaimed(Rule):
    """Every operation that was submitted, or for which something was sent, is in the client's report.

    An operation that nobody remembers, its job at the provider notwithstanding, was never durable. Where nothing was
    sent, it is judged if the submit was not refused, the worker that was given it had time to make it durable, and all
    of its deadlines have passed since: a client may work through what it is given one by one.
    """

    def at_end(self) -> Iterator[Finding]:
        if not self.world.claims_made:
            return
        for operation in self.world.operations.values():
            last = operation.last_call
            if last is None:
                yield from self._judge_unsent(operation)
                continue
            self.judged += 1
            if not operation.claims:
                yield self.finding(
                    f"nothing is said of {operation.id} in any worker's report, although {sent(last)} was sent for it. "
                    "Load every operation from the durable store on start.",
                    last.sent,
                    self.world.ended,
                )

    def _judge_unsent(self, operation: Operation) -> Iterator[Finding]:
        told, ended = operation.submitted, self.world.ended
        if told is None or ended is None or not isinstance(told.fact, Commanded) or "submit" in operation.refusals:
            return
        worker = told.fact.worker
        if (
            told.seq in self.world.unheard
            or not self.world.lasted(told, worker)
            or ended.at < due_at(self.world, operation)
        ):
            return
        self.judged += 1
        if not operation.claims:
            yield self.finding(
                f"{operation.id} was submitted to {worker} {at(told)}, who did not refuse it, and in the "
                f"{seconds(ended.at - told.at)} until the end nothing was sent for it and no worker says anything of "
                "it. Make an operation durable before its submit counts as taken, or refuse it.",
                told,
                ended,
            )


@rule(id="no-orphaned-jobs", requirement="W1.5", needs=Needs.REPORT)
class NoOrphanedJobs(Rule):
    """No job exists at the provider for an operation whose claims name none of its jobs.

    It costs money and nobody will ever read its result. An operation that is claimed to need a human decision says
    so, and is no orphan.
    """

    def at_end(self) -> Iterator[Finding]:
        if not self.world.claims_made:
            return
        for entry in self.world.ledger.values():
            line = entry.fact
            if not isinstance(line, LedgerRead) or line.operation is None:
                continue
            operation = self.world.operation(line.operation)
            claims = claims_of(operation)
            if not claims or operation.decided or any(claim.state == "human_decision_required" for _, claim in claims):
                continue  # every-operation-is-claimed judges the first of these
            named = {claim.remote_job for _, claim in claims}
            if any(self._denies(operation, each) for each in operation.creates()):
                continue  # the provider said that there would be none
            if any(misled(operation, claim) for _, claim in claims):
                continue
            if self._copied(operation) or any(not claim.at_rest for _, claim in claims):
                continue
            self.judged += 1
            if named.isdisjoint(job.id for job in operation.jobs) and self.first_time(operation.id):
                claim_entry, claim = claims[0]
                yield self.finding(
                    f"job {line.job} of {operation.id} is {line.state} at the provider, but {claim.worker} claims the "
                    "operation to be "
                    f"{claim.state} and names {claim.remote_job or 'no job'} {at(claim_entry)}. Find out what became "
                    "of every create.",
                    *(job.created for job in operation.jobs),
                    claim_entry,
                    entry,
                )

    @staticmethod
    def _denies(operation: Operation, create: Exchange) -> bool:
        return is_rejection(create) and not is_key_conflict(create) and settles(operation, create)

    def _copied(self, operation: Operation) -> bool:
        """Whether the network made a job of its own copy, which a client cannot know of."""
        return self.world.contract.idempotency.mechanism is Mechanism.NONE and any(
            (made := self.world.exchanges.get(job.fact.exchange)) is not None and made.request.copy_of is not None
            for job in operation.jobs
        )


@rule(id="claims-match-ledger", requirement="W1.4", needs=Needs.REPORT)
class ClaimsMatchLedger(Rule):
    """The job that a claim names is in the provider's books, and is a job of that operation."""

    def at_end(self) -> Iterator[Finding]:
        if not self.world.ledger:
            return
        for operation in self.world.operations.values():
            for entry, claim in claims_of(operation):
                if claim.remote_job is None or claim.state == "human_decision_required" or misled(operation, claim):
                    continue
                self.judged += 1
                line = self.world.ledger.get(claim.remote_job)
                owner = line.fact.operation if line is not None and isinstance(line.fact, LedgerRead) else None
                if (line is not None and owner in {None, operation.id}) or not self.first_time(operation.id):
                    continue
                told = "is not in the provider's books" if line is None else f"is a job of {owner}"
                yield self.finding(
                    f"{claim.worker} claims that {operation.id} is job {claim.remote_job} {at(entry)}, which {told}. "
                    "Tie a job to an operation only by what the provider answers.",
                    line,
                    entry,
                )


@rule(id="lease-taken-over", requirement="W4.1", needs=Needs.WIRE)
class LeaseTakenOver(Rule):
    """The job of a worker that died is taken over by another one once the lease has run out.

    Judged where another worker was alive and undisturbed for several times as long as that may take.
    """

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._last: dict[str, Exchange] = {}

    def on_request(self, exchange: Exchange) -> Iterator[Finding]:
        name = exchange.operation
        if name is None:
            return
        last = self._last.get(name)
        self._last[name] = exchange
        if (
            last is not None
            and last.request.worker != exchange.request.worker
            and self.world.worker(last.request.worker).dead
        ):
            self.judged += 1
        yield from ()

    def at_end(self) -> Iterator[Finding]:
        ended = self.world.ended
        if ended is None:
            return
        for operation in self.world.operations.values():
            last = operation.last_call
            if last is None or not operation.jobs or not self.world.worker(last.request.worker).dead:
                continue
            claims = claims_of(operation)
            if not claims or all(claim.at_rest for _, claim in claims):
                continue
            died_at = self.world.worker(last.request.worker).cut_times[-1:]
            since = max([last.sent.at, *died_at])
            heirs = [each.name for each in self.world.workers.values() if self._well(each.name, since)]
            patience_s = PATIENCE * self.world.longest_wait_s + self.world.fell_behind_s(last.sent)
            if not heirs or ended.at < since + patience_s:
                continue
            self.judged += 1
            yield self.finding(
                f"{last.request.worker} died after {sent(last)} for {operation.id}, and in the "
                f"{seconds(ended.at - since)} until the end "
                f"{' and '.join(heirs)} did nothing about it. Take over what a dead worker observed when its lease "
                "runs out.",
                last.sent,
                claims[0][0],
                ended,
            )

    def _well(self, name: str, since: float) -> bool:
        worker = self.world.worker(name)
        return worker.running and all(cut_at < since for cut_at in worker.cut_times)
