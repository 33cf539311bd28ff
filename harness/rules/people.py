"""What a person says of an operation at rest is done: it is looked at again, or goes on as was decided.

Stop commands are judged in ``cancelling``.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from fake_provider.contract import ResultKind
from fake_provider.facts import Endpoint
from harness.history import Claimed, Commanded, Entry
from harness.rules.liveness import claims_of
from harness.rules.observing import result_deadline
from harness.rules.registry import Needs, Rule, rule
from harness.rules.views import Exchange, Operation
from harness.rules.words import at, seconds
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
            slow_s = world.time("poll_cap_s", 2) * (1 + world.time("poll_jitter", 0.1)) + LOOK_S
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
