"""After three status reads in a row that came to nothing the job is taken for failed."""

from typing import Any

import httpx2

from harness.subject import Client, Host
from tests.correct_clients._plain import PlainClient, Record

SCENARIO = "status-fails-for-a-while"
CAUGHT_BY = "failed-only-if-remote-failed"

PATIENCE = 3


class Broken(PlainClient):
    failures = 0

    async def _call(self, record: Record, method: str, path: str, **more: Any) -> httpx2.Response | None:
        answer = await super()._call(record, method, path, **more)
        self.failures = self.failures + 1 if answer is None or answer.status_code >= 500 else 0
        return answer

    async def _observe(self, record: Record, now: float) -> None:
        await super()._observe(record, now)
        if self.failures >= PATIENCE:
            self._rest(record, "failed")


def build(host: Host) -> Client:
    return Broken(host)
