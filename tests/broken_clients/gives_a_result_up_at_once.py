"""One try that comes to nothing, and the result is said to be unavailable."""

from harness.subject import Client, Host
from tests.correct_clients._plain import PlainClient, Record

SCENARIO = "result-fails-for-a-while"
CAUGHT_BY = "unavailable-only-after-tries"


class Broken(PlainClient):
    async def _collect(self, record: Record, now: float) -> None:
        await super()._collect(record, now)
        if record.state == "result_collecting":
            self._rest(record, "result_unavailable", "it was not to be had")


def build(host: Host) -> Client:
    return Broken(host)
