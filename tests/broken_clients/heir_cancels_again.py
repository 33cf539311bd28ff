"""Whoever takes over a cancel that was on its way makes it again, whatever the contract says of second ones."""

import msgspec

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.operation import Call, Operation
from reference_client.steps import Step
from reference_client.workflow import Workflow

SCENARIO = "crash-with-cancel-in-flight"
CAUGHT_BY = "one-cancel-per-intent"


class Broken(Workflow):
    def interrupted(self, operation: Operation, *, actor: str, now: float) -> Step:
        step = super().interrupted(operation, actor=actor, now=now)
        if operation.in_flight is None or operation.in_flight.call is not Call.CANCEL:
            return step
        forgotten = msgspec.structs.replace(step.operation, cancel_calls=0, next_cancel_at=now)
        return Step(forgotten, step.entries, step.result)


def build(host: Host) -> Client:
    return build_with(host, workflow=Broken)
