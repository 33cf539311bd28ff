"""Of what the provider states of a result only the size is compared."""

from harness.subject import Client, Host
from tests.correct_clients._plain import PlainClient, Record

SCENARIO = "result-damaged"
CAUGHT_BY = "harmed-result-not-taken"
ALSO_CAUGHT_BY = ("result-matches-provider",)


class Broken(PlainClient):
    def _keep(self, record: Record, body: bytes, kind: str) -> None:
        record.told = {name: value for name, value in record.told.items() if name == "size"}
        super()._keep(record, body, "application/json")


def build(host: Host) -> Client:
    return Broken(host)
