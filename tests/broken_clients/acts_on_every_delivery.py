"""Webhooks are not de-duplicated: each delivery is a reason to poll."""

import msgspec

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.operation import EventNotice, HistoryEntry
from reference_client.stores.protocol import MakeEntry, OperationStore
from tests.broken_clients._parts import Store

SCENARIO = "running-told-twice"
CAUGHT_BY = "duplicate-webhook-changes-nothing"
ALSO_CAUGHT_BY = ("obeys-retry-after",)


class Broken(Store):
    def __init__(self, inner: OperationStore) -> None:
        super().__init__(inner)
        self._deliveries = 0

    async def take_event(self, notice: EventNotice, make_entry: MakeEntry) -> HistoryEntry | None:
        self._deliveries += 1
        notice = msgspec.structs.replace(notice, event_id=f"{notice.event_id}-{self._deliveries}")
        return await super().take_event(notice, make_entry)


def build(host: Host) -> Client:
    return build_with(host, store=Broken)
