"""A stop command for an operation that has timed out is ignored: it is at rest, is it not?"""

from harness.subject import Client, Host
from tests.correct_clients._plain import PlainClient

SCENARIO = "stop-after-the-deadline"
CAUGHT_BY = "stop-command-acted-upon"


class Broken(PlainClient):
    async def cancel(self, operation: str, who: str, why: str) -> None:
        if self.records[operation].state != "result_timed_out":
            await super().cancel(operation, who, why)


def build(host: Host) -> Client:
    return Broken(host)
