"""Where there are webhooks the job is polled seldom, in case that none comes."""

import httpx2

from harness.subject import Client, Host
from tests.correct_clients._plain import PlainClient, Record

SELDOM_S = 9.0


class Listening(PlainClient):
    def _later(self, record: Record, answer: httpx2.Response | None) -> None:
        super()._later(record, answer)
        observes = record.state == "observing" and record.stop_at is None
        if observes and self.contract["webhooks"]["enabled"] and answer is not None and answer.is_success:
            record.due_at = max(record.due_at, self.now() + SELDOM_S)


def build(host: Host) -> Client:
    return Listening(host)
