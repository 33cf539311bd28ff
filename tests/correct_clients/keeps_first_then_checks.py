"""What came as a result is put away first, and checked in a step of its own."""

from typing import Any

from harness.subject import Client, Host
from tests.correct_clients._plain import PlainClient, Record


class Keeping(PlainClient):
    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.kept: dict[str, Any] = host.disk.setdefault("kept", {})

    def _keep(self, record: Record, body: bytes, kind: str) -> None:
        self.kept[record.operation] = (body, kind)
        record.due_at = self.now()

    async def _collect(self, record: Record, now: float) -> None:
        kept = self.kept.get(record.operation)
        if kept is None:
            await super()._collect(record, now)
        else:
            super()._keep(record, *kept)


def build(host: Host) -> Client:
    return Keeping(host)
