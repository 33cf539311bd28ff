"""The create goes out first, and the record is made once it has been answered."""

import httpx2

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.adapters.jobs import JobsAdapter
from reference_client.config import Terms
from reference_client.operation import Operation
from reference_client.steps import Step
from reference_client.stores.protocol import OperationStore
from tests.broken_clients._parts import Store

SCENARIO = "happy-path"
CAUGHT_BY = "record-before-request"
ALSO_CAUGHT_BY = (
    "no-create-once-accepted",
    "obeys-retry-after",
)


class Broken(Store):
    def __init__(self, inner: OperationStore, host: Host) -> None:
        super().__init__(inner)
        self._host = host

    async def add(self, step: Step) -> Operation:
        request = JobsAdapter(Terms.read(self._host.contract)).create(step.operation)
        headers = {
            **request.headers,
            "authorization": self._host.authorization,
            "traceparent": f"00-{step.operation.trace_id}-00f067aa0ba902b7-01",
        }
        async with httpx2.AsyncClient(transport=self._host.transport, base_url=self._host.base_url) as client:
            await client.request(request.method, request.path, headers=headers, content=request.body)
        return await super().add(step)


def build(host: Host) -> Client:
    return build_with(host, store=lambda inner: Broken(inner, host))
