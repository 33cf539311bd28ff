"""Leases are for observing: a create is sent by whichever worker comes by, and looked up while it is in flight."""

from harness.subject import Client, Host
from tests.correct_clients._plain import PlainClient, Record

SCENARIO = "two-workers-slow-create"
CAUGHT_BY = "one-job-per-operation"
ALSO_CAUGHT_BY = (
    "no-blind-resend",
    "conflicting-job-ids-need-a-human",
    "conflicting-job-ids-stop-everything",
    "one-observer-per-job",
)


class Broken(PlainClient):
    async def _look_at(self, record: Record) -> None:
        if record.state in {"create_pending", "create_unknown"}:
            record.owned_until = 0.0
        await super()._look_at(record)


def build(host: Host) -> Client:
    return Broken(host)
