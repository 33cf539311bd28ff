"""While one job runs, whatever else is submitted is withdrawn, and nobody is told."""

from harness.subject import Client, Host
from tests.correct_clients._plain import PlainClient, Record

SCENARIO = "two-long-jobs-side-by-side"
CAUGHT_BY = "withdrawn-only-if-never-sent"


class Broken(PlainClient):
    async def _create(self, record: Record, now: float) -> None:
        busy = any(each.state == "observing" for each in self.records.values())
        if busy and record.first_sent_at is None:
            self._rest(record, "withdrawn", "there is too much to do")
        else:
            await super()._create(record, now)


def build(host: Host) -> Client:
    return Broken(host)
