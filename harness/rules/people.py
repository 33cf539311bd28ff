"""What a person says is done: an operation is stopped, looked at again, or goes on as was decided (W4.6, W5.1, W6.3).

How a cancel is called, and what may be said of it, is judged in ``cancelling``.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from fake_provider.contract import CancelEffect, ResultKind
from fake_provider.facts import Endpoint
from harness.history import Claimed, Commanded, Entry
from harness.rules.cancelling import gave_up
from harness.rules.liveness import claims_of
from harness.rules.observing import result_deadline
from harness.rules.registry import Needs, Rule, rule
from harness.rules.views import Exchange, Operation
from harness.rules.words import at, seconds, sent
from harness.verdict import Finding

__all__: list[str] = []

LOOKED_AT_AGAIN: Final = frozenset(
    {"result_timed_out", "cancellation_unconfirmed", "result_unavailable", "result_validation_failed"}
)
"""States from which one more look may lead on."""

DECIDED_ENDS: Final = frozenset({"failed", "cancelled", "withdrawn"})
"""What a person may decide an operation to be, so that nothing is left to do."""

NOTHING_DONE: Final = frozenset({"human_decision_required", "succeeded", *DECIDED_ENDS})
"""States in which a client rests that has not gone on as was decided: no clock leads into them."""

REACHED_WITHOUT_A_CALL: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "create_unknown": frozenset({"human_decision_required"}),  # where there is no way to find out
        "reconciliation": frozenset({"human_decision_required"}),
        "result_collecting": frozenset({"succeeded"}),  # of a result that is here already
    }
)
"""Where an operation may come to from what was decided, with nothing sent."""

LOOK_S: Final = 1.0
"""In this time a client that has a result in hand has judged it: those that look once a second for what is due, too."""


@rule(id="stop-command-acted-upon", requirement="W6.3", needs=Needs.WIRE)
class StopCommandActedUpon(Rule):
    """A stop command leads to a cancel call once the job is known, unless the job ended first.

    A command that comes while the create is unresolved is kept until then, whoever dies meanwhile. Judged where the
    worker that was told had time to make the command durable, and where every worker was left alone for as long as
    acting may take. One that died and does not know whether it called may say so (``cancellation_unconfirmed``).
    """

    def at_end(self) -> Iterator[Finding]:
        if self.world.contract.cancel.effect is CancelEffect.UNSUPPORTED or self.world.ended is None:
            return
        for operation in self.world.operations.values():
            known = self.world.known_job(operation)
            if not operation.cancels or known is None or operation.decided is not None:
                continue
            if operation.calls.get(Endpoint.CANCEL):
                self.judged += 1
                continue
            yield from self._judge(operation, *known, self.world.ended)

    def _judge(self, operation: Operation, job_id: str, told: Exchange, over: Entry) -> Iterator[Finding]:
        accepted, job = told.ended or told.sent, self.world.jobs.get(job_id)
        for command in operation.cancels:
            began = max(command, accepted, key=lambda entry: entry.seq)
            if gave_up(self.world, operation, began):
                continue
            free_at = max(map(self.world.taken_up_at, (command, began)))
            due = free_at + self.world.longest_wait_s + self.world.fell_behind_s(command)
            ended_first = job is None or (job.terminal and job.moved is not None and job.moved.at <= due)
            if ended_first or over.at <= due or not self._had_to_act(operation, command, began, free_at, due):
                continue
            self.judged += 1
            if self.first_time(operation.id):
                yield self.finding(
                    f"{operation.id} was to be stopped {at(command)}, its job {job_id} was known {at(accepted)}, and "
                    f"no cancel call was sent until the end {at(over)}. Keep the command, and act on it as soon as the "
                    "job is known.",
                    command,
                    accepted,
                    over,
                )

    def _had_to_act(self, operation: Operation, command: Entry, began: Entry, free_at: float, due: float) -> bool:
        world = self.world
        if operation.held_until > began.at:
            return False  # it was told to wait longer than usual
        if any(free_at < cut_at <= due for worker in world.workers.values() for cut_at in worker.cut_times):
            return False
        first = operation.cancels[0]  # a command that is given again is the same intent
        if all(worker.cut_after(first.seq) is None for worker in world.workers.values()):
            return True
        in_time = free_at + 2 * world.time("lease_s", 2) <= began.at + world.time("cancel_deadline_s", 0)
        return in_time and self._is_durable(command) and not self._claims(operation, "cancellation_unconfirmed")

    def _is_durable(self, command: Entry) -> bool:
        """Whether the worker that was told was left alone until the command must have been on record."""
        if not isinstance(command.fact, Commanded):
            return False
        cut_at = self.world.worker(command.fact.worker).cut_after(command.seq)
        return cut_at is None or cut_at > command.at + self.world.settle_s + self.world.slack_s

    @staticmethod
    def _claims(operation: Operation, state: str) -> bool:
        return any(isinstance(entry.fact, Claimed) and entry.fact.state == state for entry in operation.claims.values())


@rule(id="nothing-begun-after-a-stop", requirement="W6.3", needs=Needs.WIRE)
class NothingBegunAfterAStop(Rule):
    """Where there is no job when a stop command comes, none is created afterwards.

    Nothing was sent yet, or an authoritative look-up has found nothing since: what is sent now is no re-send of
    anything but new work that somebody has asked not to be done. Judged where the command, and then the look-up, left
    the client as much time as acting may take, and where nobody was interrupted or decided otherwise.
    """

    endpoints = frozenset({Endpoint.CREATE})

    def on_request(self, exchange: Exchange) -> Iterator[Finding]:
        world, operation = self.world, self.world.operation(exchange.operation or "")
        command = next((each for each in operation.cancels if each.seq not in world.unheard), None)
        if command is None or operation.decided is not None or self._is_wanted_again(operation, command):
            return
        asked = exchange.sent
        if exchange.previous is not None:
            absent = operation.absent
            looked_up = operation.calls.get(Endpoint.LOOKUP, ())
            proof = next((each for each in looked_up if absent is not None and each.ended is absent), None)
            if proof is None or proof.sent.seq < exchange.previous.sent.seq:
                return  # a job may exist: it is to be found, and stopped then
            asked = proof.sent
        if any(worker.cut_after(command.seq) is not None for worker in world.workers.values()):
            return
        self.judged += 1
        if asked.at <= world.taken_up_at(command) + world.longest_wait_s + world.fell_behind_s(command):
            return
        known = "nothing had been sent" if asked is exchange.sent else f"the look-up {at(asked)} found no job"
        yield self.finding(
            f"{sent(exchange)} begins {operation.id}, which was to be stopped {at(command)}; {known}. Send nothing "
            "more: withdraw the operation, or ask a person.",
            command,
            asked,
            exchange.sent,
        )

    @staticmethod
    def _is_wanted_again(operation: Operation, command: Entry) -> bool:
        """Whether the operation was submitted after it was told to stop."""
        submits = (operation.submitted, operation.submitted_again)
        return any(each is not None and each.seq > command.seq for each in submits)

    def at_end(self) -> Iterator[Finding]:
        for operation in self.world.operations.values():
            known = not operation.creates() or operation.absent is not None
            self.judged += bool(operation.cancels) and known
        return iter(())


class CommandObeyed(Rule):
    """Common to rules by which a person's command leads to something: told, not refused, and time enough since."""

    def calls_since(self, operation: Operation, command: Entry) -> bool:
        """Whether anything was sent for the operation since."""
        last = operation.last_call
        elsewhere = operation.elsewhere[-1:]
        return any(each.sent.seq > command.seq for each in (*elsewhere, *([] if last is None else [last])))

    def had_to_act(self, operation: Operation, command: Entry) -> bool:
        """Whether whoever was told had to do something about it by the end."""
        world, ended = self.world, self.world.ended
        refusal = operation.refusals.get(command.fact.command) if isinstance(command.fact, Commanded) else None
        refused = refusal is not None and refusal.seq > command.seq
        disturbed = any(worker.cut_after(command.seq) is not None for worker in world.workers.values())
        if ended is None or refused or disturbed or world.clocks_were_set:
            return False
        return ended.at > max(command.at + world.longest_wait_s, operation.held_until)


@rule(id="reconcile-command-acted-upon", requirement="W4.6", needs=Needs.REPORT)
class ReconcileCommandActedUpon(CommandObeyed):
    """A command to look again at an operation that rests leads to one more read, or is refused.

    After a deadline the job may have ended, and a result that could not be had may be there now: enough is kept to find
    out, and a person who asks is either obeyed or told. Judged where the operation surely rested when the command came,
    where its job was known, and where nobody was interrupted afterwards.
    """

    def at_end(self) -> Iterator[Finding]:
        for operation in self.world.operations.values():
            command = operation.asked
            if command is None or not isinstance(command.fact, Commanded) or command.fact.command != "reconcile":
                continue
            resting = [
                (entry, claim)
                for entry, claim in claims_of(operation)
                if claim.state in LOOKED_AT_AGAIN and claim.remote_job is not None
            ]
            if operation.decided is not None or not self.had_to_act(operation, command):
                continue
            if self.calls_since(operation, command):
                self.judged += 1
                continue
            if resting and self._rested(operation, command, resting[0][1].state):
                self.judged += 1
                yield self._breach(operation, command, *resting[0])

    def _breach(self, operation: Operation, command: Entry, entry: Entry, claim: Claimed) -> Finding:
        told = command.fact.worker if isinstance(command.fact, Commanded) else "a worker"
        return self.finding(
            f"{told} was told {at(command)} to look again at {operation.id}, which rested; nothing was sent for it in "
            f"the {seconds(entry.at - command.at)} until it was claimed to be {claim.state} {at(entry)}. Read its job "
            "once more, or refuse the command and say why.",
            command,
            entry,
        )

    def _rested(self, operation: Operation, command: Entry, state: str) -> bool:
        """Whether the operation surely was at rest already when the command came."""
        world, last = self.world, operation.last_call
        if world.contract.result.kind is ResultKind.ONE_TIME and state == "result_unavailable":
            return False  # there may be nothing left to look for
        reached = operation.recorded_states.get(state)
        if reached is not None:
            return reached.seq < command.seq
        if last is None or last.ended is None:
            return False
        idle_s = command.at - last.ended.at
        if state == "result_timed_out":
            deadline = result_deadline(world, operation)
            cancelled = bool(operation.cancels or operation.calls.get(Endpoint.CANCEL))
            slow_s = world.longest_pause_s + LOOK_S
            if deadline is not None and not cancelled and command.at > max(deadline, last.ended.at) + slow_s:
                return True
        if state == "result_validation_failed" and self._came(last):
            return idle_s > LOOK_S + world.settle_s
        return idle_s > max(world.longest_wait_s, operation.held_until - last.ended.at)

    @staticmethod
    def _came(last: Exchange) -> bool:
        return last.request.endpoint is Endpoint.RESULT and last.status == 200


@rule(id="decision-acted-upon", requirement="W5.1", needs=Needs.REPORT)
class DecisionActedUpon(CommandObeyed):
    """What a person has decided about an operation is done, or refused.

    Where it was decided that the operation is over, it is claimed as that. Else it goes on from there: it is not left
    waiting for the decision that was made, nor ended as something else, without so much as one call. Judged where
    nobody was interrupted afterwards, and the person said nothing else, before or after.
    """

    def at_end(self) -> Iterator[Finding]:
        for operation in self.world.operations.values():
            command = operation.decided
            if command is None or not isinstance(command.fact, Commanded) or not self.had_to_act(operation, command):
                continue
            decided = command.fact.decided
            overtaken = operation.asked is not command or len(operation.decisions) > 1 or operation.cancels
            claims = claims_of(operation)
            if decided is None or overtaken or not claims:
                continue
            self.judged += 1
            entry, claim = claims[0]
            if self._is_done(decided, claim, called=self.calls_since(operation, command)):
                continue
            yield self.finding(
                f"{command.fact.worker} was told {at(command)} that {operation.id} was decided to be {decided}; "
                f"{claim.worker} claims it to be {claim.state} {at(entry)}, and "
                + ("that is not what was decided" if decided in DECIDED_ENDS else "nothing was sent for it since")
                + ". Go on from what a person decides, or refuse the command and say why.",
                command,
                entry,
            )

    @staticmethod
    def _is_done(decided: str, claim: Claimed, *, called: bool) -> bool:
        if decided in DECIDED_ENDS:
            return claim.state == decided
        undone = NOTHING_DONE - REACHED_WITHOUT_A_CALL.get(decided, frozenset())
        return called or claim.state == decided or claim.state not in undone
