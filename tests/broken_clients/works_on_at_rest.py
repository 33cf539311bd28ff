"""An operation whose deadline has passed is recorded as timed out, and polled on."""

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.lifecycle import LocalState
from reference_client.operation import Call, Operation
from reference_client.workflow import Action, Send, Wait, Workflow

SCENARIO = "result-deadline-passes"
CAUGHT_BY = "no-call-at-rest"
ALSO_CAUGHT_BY = ("no-poll-after-result-deadline",)


class Broken(Workflow):
    def next_action(self, operation: Operation, now: float) -> Action:
        if operation.state is not LocalState.RESULT_TIMED_OUT or operation.reconcile_until is not None:
            return super().next_action(operation, now)
        if now < operation.next_attempt_at:
            return Wait(operation.next_attempt_at)
        return Send(Call.STATUS, "perhaps it is done by now")


def build(host: Host) -> Client:
    return build_with(host, workflow=Broken)
