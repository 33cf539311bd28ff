"""Retry-After is looked for where all is well, and at 429; a 503 is tried again as the back-off says."""

import httpx2

from harness.subject import Client, Host
from tests.correct_clients._plain import PlainClient, Record

SCENARIO = "unavailable-for-two-seconds"
CAUGHT_BY = "obeys-retry-after"


class Broken(PlainClient):
    def _later(self, record: Record, answer: httpx2.Response | None) -> None:
        super()._later(record, None if answer is not None and answer.status_code == 503 else answer)


def build(host: Host) -> Client:
    return Broken(host)
