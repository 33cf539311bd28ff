"""Webhooks are de-duplicated by their job: the second event of a job counts as the first once more."""

import msgspec

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.operation import EventNotice, HistoryEntry
from reference_client.stores.protocol import MakeEntry
from tests.broken_clients._parts import Store

SCENARIO = "running-then-done"
CAUGHT_BY = "final-event-leads-to-a-read"


class Broken(Store):
    async def take_event(self, notice: EventNotice, make_entry: MakeEntry) -> HistoryEntry | None:
        return await super().take_event(msgspec.structs.replace(notice, event_id=notice.remote_job_id), make_entry)


def build(host: Host) -> Client:
    return build_with(host, store=Broken)
