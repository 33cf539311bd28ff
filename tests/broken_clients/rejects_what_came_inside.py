"""A result that came inside a status is compared with a file that was never fetched, and found wanting."""

from harness.subject import Client, Host
from tests.correct_clients._plain import PlainClient, Record

SCENARIO = "lost-create-response-stripe-like"
CAUGHT_BY = "finished-result-not-lost"


class Broken(PlainClient):
    async def _collect(self, record: Record, now: float) -> None:
        if "inline" in record.told:
            self._rest(record, "result_validation_failed", "there is no file")
        else:
            await super()._collect(record, now)


def build(host: Host) -> Client:
    return Broken(host)
