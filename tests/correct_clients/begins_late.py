"""A program that a scheduler starts every other second: what was stopped until then is never begun."""

from harness.subject import Client, Host
from tests.correct_clients._plain import PlainClient


class Late(PlainClient):
    tick_s = 2.0

    async def run(self) -> None:
        await self.host.clock.sleep(self.tick_s)
        await super().run()


def build(host: Host) -> Client:
    return Late(host)
