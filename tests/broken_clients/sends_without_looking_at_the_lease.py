"""The lease is looked at when it is taken, and not again before a call."""

import msgspec

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.adapters.protocol import Answer, NoAnswer
from reference_client.operation import Operation
from reference_client.stores.protocol import Lease
from reference_client.worker import Worker

SCENARIO = "stopped-between-intent-and-call"
CAUGHT_BY = "stale-worker-does-nothing"
ALSO_CAUGHT_BY = (
    "obeys-retry-after",  # its next read, by the record that the answer was not written to
    "one-observer-per-job",
    "observes-only-under-lease",
)


class Broken(Worker):
    async def _call(self, lease: Lease, operation: Operation) -> tuple[Lease, Answer | NoAnswer]:
        answer = await self.caller.call(operation, self.workflow.request(operation))
        return lease, msgspec.structs.replace(answer, received_at=await self.store.now())


def build(host: Host) -> Client:
    return build_with(host, worker=Broken)
