"""The lease is shorter than a call may take, and runs out while the answer is waited for."""

from typing import Any

import httpx2

from harness.subject import Client, Host
from tests.correct_clients._plain import PlainClient, Record

SCENARIO = "two-workers-slow-answers"
CAUGHT_BY = "one-observer-per-job"


class Broken(PlainClient):
    async def _call(self, record: Record, method: str, path: str, **more: Any) -> httpx2.Response | None:
        self.lease_s, usual_s = 0.3, self.lease_s
        try:
            return await super()._call(record, method, path, **more)
        finally:
            self.lease_s = usual_s


def build(host: Host) -> Client:
    return Broken(host)
