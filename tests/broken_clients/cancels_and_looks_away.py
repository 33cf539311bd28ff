"""After the cancel call was taken the job is not read again."""

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.operation import Call, Operation
from reference_client.workflow import Action, Send, Wait, Workflow
from tests.broken_clients._parts import story

SCENARIO = story("cancel-takes-long")
CAUGHT_BY = "observation-continues-after-cancel"


class Broken(Workflow):
    def _when_cancelling(self, operation: Operation, now: float) -> Action:
        action = super()._when_cancelling(operation, now)
        if isinstance(action, Send) and action.call is Call.STATUS and operation.cancel_deadline is not None:
            return Wait(operation.cancel_deadline)
        return action


def build(host: Host) -> Client:
    return build_with(host, workflow=Broken)
