"""A stop command before the create was answered withdraws the operation, sent or not."""

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.lifecycle import LocalState
from reference_client.operation import Operation
from reference_client.steps import Draft, Step
from reference_client.workflow import Action, Settle, Workflow
from tests.broken_clients._parts import force

SCENARIO = "cancel-before-the-job-is-known"
CAUGHT_BY = "withdrawn-only-if-never-sent"
ALSO_CAUGHT_BY = (
    "legal-transitions-only",
    "no-orphaned-jobs",
)


class Broken(Workflow):
    def next_action(self, operation: Operation, now: float) -> Action:
        if operation.state is LocalState.CREATE_UNKNOWN and operation.stop is not None:
            return Settle(after=LocalState.WITHDRAWN, cause="the stop command", reason=operation.stop.why)
        return super().next_action(operation, now)

    def settle(self, operation: Operation, action: Settle, *, actor: str, now: float) -> Step:
        if action.after is not LocalState.WITHDRAWN:
            return super().settle(operation, action, actor=actor, now=now)
        draft = Draft(operation, actor=actor, now=now)
        force(draft, LocalState.WITHDRAWN, cause=action.cause, reason=action.reason)
        return draft.step()


def build(host: Host) -> Client:
    return build_with(host, workflow=Broken)
