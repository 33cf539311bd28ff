"""A webhook that tells of success is believed, and the result collected without a status read."""

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.lifecycle import Evidence, LocalState
from reference_client.operation import Command, EventNotice, Operation
from reference_client.steps import Draft, Step
from reference_client.workflow import Workflow

SCENARIO = "duplicate-webhook"
CAUGHT_BY = "final-read-before-success"


class Broken(Workflow):
    def take_up(self, operation: Operation, command: Command, *, actor: str, now: float) -> Step:
        told = isinstance(command, EventNotice) and command.remote_state == "succeeded"
        if not told or operation.state is not LocalState.OBSERVING:
            return super().take_up(operation, command, actor=actor, now=now)
        draft = Draft(operation, actor=actor, now=now)
        draft.set(next_attempt_at=now, collect_deadline=now + self.timing.create_deadline_s)
        draft.move(
            LocalState.RESULT_COLLECTING, Evidence.STATUS_SUCCESS, cause="a webhook", reason="it says job.succeeded"
        )
        return draft.step()


def build(host: Host) -> Client:
    return build_with(host, workflow=Broken)
