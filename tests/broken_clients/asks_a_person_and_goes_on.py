"""A person is asked, and a little later the client goes on by itself as though one had answered."""

import asyncio

from harness.subject import Client, Host
from tests.correct_clients._plain import PlainClient, Record

SCENARIO = "lookup-that-finds-nothing"
CAUGHT_BY = "claimed-rest-is-kept"

PATIENCE_S = 1.5


class Broken(PlainClient):
    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.waiting: set[asyncio.Task[None]] = set()

    def _rest(self, record: Record, state: str, why: str | None = None) -> None:
        super()._rest(record, state, why)
        if state == "human_decision_required":
            self.waiting.add(asyncio.create_task(self._go_on(record)))

    async def _go_on(self, record: Record) -> None:
        await self.host.clock.sleep(PATIENCE_S)
        record.state, record.created_at = "create_unknown", self.now()


def build(host: Host) -> Client:
    return Broken(host)
