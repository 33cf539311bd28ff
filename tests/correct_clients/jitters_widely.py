"""Waits are drawn between the first delay and three times the wait before: decorrelated jitter."""

import httpx2

from harness.subject import Client, Host
from reference_client.polling import read_retry_after
from tests.correct_clients._plain import PlainClient, Record


class Jittering(PlainClient):
    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.waits: dict[str, float] = host.disk.setdefault("waits", {})

    def _later(self, record: Record, answer: httpx2.Response | None) -> None:
        super()._later(record, answer)
        now, first_s, cap_s = self.now(), self.timing["poll_first_s"], self.timing["poll_cap_s"]
        if answer is None or read_retry_after(dict(answer.headers), now).delay_s is None:
            before_s = self.waits.get(record.operation, first_s)
            self.waits[record.operation] = min(cap_s, self.host.random.uniform(first_s, 3 * before_s))
            record.due_at = now + self.waits[record.operation]


def build(host: Host) -> Client:
    return Jittering(host)
