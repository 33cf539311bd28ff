"""A create that was not answered is given to a person at once, though its token would resolve it."""

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.creating import Path
from reference_client.operation import Operation
from reference_client.workflow import Workflow

SCENARIO = "lost-create-response"
CAUGHT_BY = "human-decision-only-if-stuck"


class Broken(Workflow):
    def reconciling_path(self, operation: Operation, now: float) -> Path | None:
        return None


def build(host: Host) -> Client:
    return build_with(host, workflow=Broken)
