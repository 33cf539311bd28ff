"""The number of items is that of the last index."""

import msgspec

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.adapters.protocol import Retrieved
from reference_client.operation import CollectedResult, Operation
from reference_client.workflow import Workflow

SCENARIO = "happy-path"
CAUGHT_BY = "counts-add-up"


class Broken(Workflow):
    def judge(self, operation: Operation, retrieved: Retrieved, location: str) -> CollectedResult:
        result = super().judge(operation, retrieved, location)
        return msgspec.structs.replace(result, records=(result.records or 1) - 1)


def build(host: Host) -> Client:
    return build_with(host, workflow=Broken)
