"""Whether a lease is over is read from the clock of the worker's own host."""

from harness.subject import Client, Host
from tests.correct_clients._plain import Record
from tests.correct_clients.notes_what_it_does import Noting

SCENARIO = "lease-under-a-wrong-clock"
CAUGHT_BY = "lease-taken-over-only-after-expiry"


class Broken(Noting):
    async def _look_at(self, record: Record) -> None:
        if record.owned_until <= self.host.clock.now():
            record.owned_until = 0.0
        await super()._look_at(record)


def build(host: Host) -> Client:
    return Broken(host)
