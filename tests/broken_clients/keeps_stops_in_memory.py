"""A stop command is kept in memory until the job is known."""

from harness.subject import Client, Host
from tests.correct_clients._plain import PlainClient, Record

SCENARIO = "crash-after-an-early-stop"
CAUGHT_BY = "stop-command-acted-upon"


class Broken(PlainClient):
    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.stops: dict[str, tuple[str, str]] = {}

    async def cancel(self, operation: str, who: str, why: str) -> None:
        self.stops[operation] = (who, why)

    async def _look_at(self, record: Record) -> None:
        if record.operation in self.stops and record.job is not None:
            await super().cancel(record.operation, *self.stops.pop(record.operation))
        await super()._look_at(record)


def build(host: Host) -> Client:
    return Broken(host)
