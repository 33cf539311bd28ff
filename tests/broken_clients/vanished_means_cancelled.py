"""A job that was told to stop and is not found any more is taken for a cancelled one."""

from typing import Any

import httpx2

from harness.subject import Client, Host
from tests.correct_clients._plain import PlainClient, Record

SCENARIO = "not-found-while-cancelling"
CAUGHT_BY = "cancelled-only-if-confirmed"


class Broken(PlainClient):
    gone = False

    async def _call(self, record: Record, method: str, path: str, **more: Any) -> httpx2.Response | None:
        answer = await super()._call(record, method, path, **more)
        self.gone = method == "GET" and answer is not None and answer.status_code == 404
        return answer

    async def _observe(self, record: Record, now: float) -> None:
        await super()._observe(record, now)
        if self.gone and record.stop_at is not None:
            self._rest(record, "cancelled")


def build(host: Host) -> Client:
    return Broken(host)
