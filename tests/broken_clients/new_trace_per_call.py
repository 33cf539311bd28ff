"""Each call begins a trace of its own."""

import msgspec

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.adapters.protocol import Answer, NoAnswer
from reference_client.operation import Operation
from reference_client.stores.protocol import Lease
from reference_client.worker import Worker

SCENARIO = "happy-path"
CAUGHT_BY = "one-trace-per-operation"


class Broken(Worker):
    async def _call(self, lease: Lease, operation: Operation) -> tuple[Lease, Answer | NoAnswer]:
        return await super()._call(
            lease, msgspec.structs.replace(operation, trace_id=f"{self.workflow.random.getrandbits(128):032x}")
        )


def build(host: Host) -> Client:
    return build_with(host, worker=Broken)
