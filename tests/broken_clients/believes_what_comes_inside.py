"""A result that comes inside the status is kept without a look: nothing can have happened to it on the way."""

import msgspec

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.operation import Operation, ResultReference
from reference_client.steps import Step
from reference_client.workflow import Workflow

SCENARIO = "inline-result-damaged"
CAUGHT_BY = "harmed-result-not-taken"
ALSO_CAUGHT_BY = ("result-matches-provider",)


class Broken(Workflow):
    def collect(self, operation: Operation, *, actor: str, now: float) -> Step:
        stated = operation.result or ResultReference()
        unstated = ResultReference(inline=stated.inline, content_type=stated.content_type)
        return super().collect(msgspec.structs.replace(operation, result=unstated), actor=actor, now=now)


def build(host: Host) -> Client:
    return build_with(host, workflow=Broken)
