"""The job is accepted and never looked at: nothing comes, and at the deadline it is said to take too long."""

from harness.subject import Client, Host
from tests.correct_clients._plain import PlainClient, Record

SCENARIO = "job-outlasts-the-deadline"
CAUGHT_BY = "timed-out-only-if-observed"


class Broken(PlainClient):
    async def _observe(self, record: Record, now: float) -> None:
        until = self._observe_until(record)
        if now < until and record.stop_at is None:
            record.due_at = until
        else:
            await super()._observe(record, now)


def build(host: Host) -> Client:
    return Broken(host)
