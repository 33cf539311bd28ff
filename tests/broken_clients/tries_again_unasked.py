"""A result that is gone is asked for once more without anybody having said so."""

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.lifecycle import Evidence, LocalState
from reference_client.operation import Operation
from reference_client.workflow import Action, Settle, Workflow

SCENARIO = "result-gone"
CAUGHT_BY = "rest-left-only-on-command"


class Broken(Workflow):
    retried = False

    def next_action(self, operation: Operation, now: float) -> Action:
        if operation.state is not LocalState.RESULT_UNAVAILABLE or self.retried:
            return super().next_action(operation, now)
        self.retried = True
        return Settle(
            after=LocalState.RESULT_COLLECTING,
            evidence=Evidence.OPERATOR_RETRY,
            cause="the result was gone",
            reason="perhaps it is back",
            changes={"collect_deadline": now + self.timing.create_deadline_s, "next_attempt_at": now},
        )


def build(host: Host) -> Client:
    return build_with(host, workflow=Broken)
