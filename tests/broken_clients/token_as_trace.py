"""The idempotency token doubles as the trace id."""

import msgspec

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.adapters.protocol import Answer, NoAnswer
from reference_client.operation import Operation
from reference_client.stores.protocol import Lease
from reference_client.worker import Worker

SCENARIO = "happy-path"
CAUGHT_BY = "trace-is-not-token"


class Broken(Worker):
    async def _call(self, lease: Lease, operation: Operation) -> tuple[Lease, Answer | NoAnswer]:
        return await super()._call(lease, msgspec.structs.replace(operation, trace_id=operation.idempotency_token[:32]))


def build(host: Host) -> Client:
    return build_with(host, worker=Broken)
