"""The trace id that is sent is that of the operation before."""

from typing import Any

import httpx2

from harness.subject import Client, Host
from tests.correct_clients._plain import PlainClient, Record

SCENARIO = "changed-request-at-a-careless-provider"
CAUGHT_BY = "one-trace-per-operation"


class Broken(PlainClient):
    trace = ""

    async def _call(self, record: Record, method: str, path: str, **more: Any) -> httpx2.Response | None:
        mine, record.trace = record.trace, self.trace or record.trace
        self.trace = mine
        try:
            return await super()._call(record, method, path, **more)
        finally:
            record.trace = mine


def build(host: Host) -> Client:
    return Broken(host)
