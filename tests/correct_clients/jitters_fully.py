"""Waits are drawn between nothing and a bound that doubles: full jitter. Each step has a lease of its own."""

import httpx2

from harness.subject import Client, Host
from reference_client.polling import read_retry_after
from tests.correct_clients._plain import PlainClient, Record


class Drawing(PlainClient):
    releases = True

    def _later(self, record: Record, answer: httpx2.Response | None) -> None:
        super()._later(record, answer)
        now, timing = self.now(), self.timing
        if answer is None or read_retry_after(dict(answer.headers), now).delay_s is None:
            bound_s = min(timing["poll_cap_s"], timing["poll_first_s"] * 2 ** (record.misses - 1))
            record.due_at = now + self.host.random.uniform(0, bound_s)


def build(host: Host) -> Client:
    return Drawing(host)
