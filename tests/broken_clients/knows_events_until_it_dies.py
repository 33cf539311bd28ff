"""Which events were taken is in the worker's memory: after a restart each may come once more as new."""

import msgspec

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.operation import EventNotice, HistoryEntry
from reference_client.stores.protocol import MakeEntry
from tests.broken_clients._parts import Store

SCENARIO = "webhook-again-after-a-restart"
CAUGHT_BY = "restart-continues-schedule"


def build(host: Host) -> Client:
    life = host.disk["lives"] = host.disk.get("lives", 0) + 1

    class Broken(Store):
        async def take_event(self, notice: EventNotice, make_entry: MakeEntry) -> HistoryEntry | None:
            seen = msgspec.structs.replace(notice, event_id=f"{notice.event_id}-{life}")
            return await super().take_event(seen, make_entry)

    return build_with(host, store=Broken)
