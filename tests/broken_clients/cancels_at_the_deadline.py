"""When the result deadline passes, the job is cancelled without anybody having asked for it."""

import msgspec

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.lifecycle import Evidence, LocalState
from reference_client.operation import Operation
from reference_client.workflow import Action, Settle, Workflow

SCENARIO = "result-deadline-passes"
CAUGHT_BY = "cancel-only-when-commanded"


class Broken(Workflow):
    def _when_observing(self, operation: Operation, now: float) -> Action:
        action = super()._when_observing(operation, now)
        if not isinstance(action, Settle):
            return action
        return msgspec.structs.replace(
            action,
            after=LocalState.CANCEL_REQUESTED,
            evidence=Evidence.STOP_COMMAND,
            changes={"cancel_deadline": now + self.timing.cancel_deadline_s},
        )


def build(host: Host) -> Client:
    return build_with(host, workflow=Broken)
