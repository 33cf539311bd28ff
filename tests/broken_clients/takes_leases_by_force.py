"""A lease is taken over as soon as its holder looks slow."""

from collections.abc import Sequence

import msgspec

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.steps import Step
from reference_client.stores.protocol import Claimed, Lease
from tests.broken_clients._parts import Store

SCENARIO = "stale-lease"
CAUGHT_BY = "lease-taken-over-only-after-expiry"


class Broken(Store):
    """A lease is stored for a tenth of the time that its holder is promised."""

    async def claim(self, owner: str, lease_s: float) -> Claimed | None:
        claimed = await super().claim(owner, lease_s / 10)
        if claimed is None:
            return None
        lease = msgspec.structs.replace(claimed.lease, until=claimed.lease.until + lease_s * 0.9)
        return msgspec.structs.replace(claimed, lease=lease)

    async def renew(self, lease: Lease, lasts_s: float) -> Lease:
        return lease

    async def commit(self, lease: Lease, step: Step, *, taken: Sequence[int] = (), lasts_s: float = 0.0) -> Lease:
        await super().commit(lease, step, taken=taken)
        return lease


def build(host: Host) -> Client:
    return build_with(host, store=Broken)
