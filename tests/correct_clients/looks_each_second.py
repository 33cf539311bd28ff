"""A program that a scheduler starts each second: what is due is done then, and its timer is no finer than that."""

from harness.subject import Client, Host
from tests.correct_clients._plain import Gone, PlainClient


class Scheduled(PlainClient):
    async def run(self) -> None:
        while True:
            for record in list(self.records.values()):
                try:
                    await self._look_at(record)
                except Gone:
                    continue
            await self.host.clock.sleep(1)


def build(host: Host) -> Client:
    return Scheduled(host)
