"""A worker only ever looks at the operations that it took in itself."""

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.stores.protocol import Claimed
from tests.broken_clients._parts import Store

SCENARIO = "worker-dies-another-takes-over"
CAUGHT_BY = "lease-taken-over"
ALSO_CAUGHT_BY = ("reaches-rest-after-faults-stop",)


class Broken(Store):
    async def claim(self, owner: str, lease_s: float) -> Claimed | None:
        claimed = await super().claim(owner, lease_s)
        if claimed is None or claimed.operation.started_by == owner:
            return claimed
        await self.release(claimed.lease, None, due_at=await self.now() + 1)
        return None


def build(host: Host) -> Client:
    return build_with(host, store=Broken)
