"""The lease is given back before the call that it was taken for."""

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.adapters.protocol import Answer, NoAnswer
from reference_client.operation import Call, Operation
from reference_client.stores.protocol import Lease
from reference_client.worker import Worker

SCENARIO = "happy-path"
CAUGHT_BY = "observes-only-under-lease"
ALSO_CAUGHT_BY = (
    "finished-result-not-lost",
    "no-poll-after-terminal",
)


class Broken(Worker):
    async def _call(self, lease: Lease, operation: Operation) -> tuple[Lease, Answer | NoAnswer]:
        flight = operation.in_flight
        if flight is not None and flight.call is Call.STATUS:
            await self.store.release(lease, None, due_at=await self.store.now() + self._timing.poll_cap_s)
            answer = await self.caller.call(operation, self.workflow.request(operation))
            return lease, answer
        return await super()._call(lease, operation)


def build(host: Host) -> Client:
    return build_with(host, worker=Broken)
