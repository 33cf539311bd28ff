"""A create that no mechanism can resolve is recorded as failed."""

import msgspec

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.lifecycle import Evidence, LocalState
from reference_client.operation import Operation
from reference_client.workflow import Action, Settle, Workflow

SCENARIO = "no-way-to-reconcile"
CAUGHT_BY = "human-decision-when-no-mechanism"
ALSO_CAUGHT_BY = (
    "failed-only-if-remote-failed",
    "no-orphaned-jobs",
)


class Broken(Workflow):
    def _when_reconciling(self, operation: Operation, now: float) -> Action:
        action = super()._when_reconciling(operation, now)
        if not isinstance(action, Settle):
            return action
        return msgspec.structs.replace(action, after=LocalState.FAILED, evidence=Evidence.DEFINITE_REJECTION)


def build(host: Host) -> Client:
    return build_with(host, workflow=Broken)
