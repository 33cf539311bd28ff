"""Failed items inside a successful result are not counted."""

import msgspec

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.adapters.protocol import Retrieved
from reference_client.operation import CollectedResult, Operation
from reference_client.workflow import Workflow

SCENARIO = "some-items-fail"
CAUGHT_BY = "failed-items-reported"


class Broken(Workflow):
    def judge(self, operation: Operation, retrieved: Retrieved, location: str) -> CollectedResult:
        result = super().judge(operation, retrieved, location)
        return msgspec.structs.replace(result, failed_items=0)


def build(host: Host) -> Client:
    return build_with(host, workflow=Broken)
