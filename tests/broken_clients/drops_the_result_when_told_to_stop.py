"""A stop command that comes while the result is collected ends the operation as cancelled."""

from harness.subject import Client, Host
from tests.correct_clients._plain import PlainClient

SCENARIO = "stop-while-collecting"
CAUGHT_BY = "cancelled-only-if-confirmed"
ALSO_CAUGHT_BY = ("finished-result-not-lost",)


class Broken(PlainClient):
    async def cancel(self, operation: str, who: str, why: str) -> None:
        await super().cancel(operation, who, why)
        if self.records[operation].state == "result_collecting":
            self._rest(self.records[operation], "cancelled")


def build(host: Host) -> Client:
    return Broken(host)
