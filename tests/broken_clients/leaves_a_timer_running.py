"""A timer that sends the create again is set with the first attempt, and never cleared."""

import asyncio
from collections.abc import Mapping
from typing import Any

from harness.subject import Client, Host
from tests.correct_clients._plain import PlainClient, Record

SCENARIO = "happy-path"
CAUGHT_BY = "no-create-once-accepted"
ALSO_CAUGHT_BY = ("claimed-rest-is-kept",)


class Broken(PlainClient):
    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.timers: set[asyncio.Task[None]] = set()

    async def _send_create(self, record: Record, now: float, keys: Mapping[str, Any]) -> None:
        if record.first_sent_at is None:
            self.timers.add(asyncio.create_task(self._again(record)))
        await super()._send_create(record, now, keys)

    async def _again(self, record: Record) -> None:
        await self.host.clock.sleep(3)
        await self._call(record, "POST", "/v1/jobs", body=record.body, idempotency_key=f'"{record.token}"')


def build(host: Host) -> Client:
    return Broken(host)
