"""Whatever comes with a 200 is the result: nothing is compared with what the provider states of it."""

import msgspec

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.adapters.protocol import Retrieved
from reference_client.operation import CollectedResult, Operation
from reference_client.workflow import Workflow

SCENARIO = "result-damaged"
CAUGHT_BY = "harmed-result-not-taken"
ALSO_CAUGHT_BY = ("result-matches-provider",)


class Broken(Workflow):
    def judge(self, operation: Operation, retrieved: Retrieved, location: str) -> CollectedResult:
        result = super().judge(operation, retrieved, location)
        return msgspec.structs.replace(result, problems=())


def build(host: Host) -> Client:
    return build_with(host, workflow=Broken)
