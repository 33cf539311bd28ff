"""When the job succeeded the operation has: nobody fetches its result."""

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.lifecycle import Evidence, LocalState
from reference_client.operation import Operation
from reference_client.workflow import Action, Settle, Workflow

SCENARIO = "happy-path"
CAUGHT_BY = "result-retrieved-before-success"


class Broken(Workflow):
    def _when_collecting(self, operation: Operation, now: float) -> Action:
        return Settle(
            after=LocalState.SUCCEEDED,
            evidence=Evidence.RESULT_VALIDATED,
            cause="the job succeeded",
            reason="the result can be fetched when it is needed",
        )


def build(host: Host) -> Client:
    return build_with(host, workflow=Broken)
