"""The counts that are reported are those of the status, which need not have any."""

from harness.subject import Client, Host
from tests.correct_clients._plain import PlainClient, Record

SCENARIO = "items-fail-uncounted"
CAUGHT_BY = "failed-items-reported"


class Broken(PlainClient):
    def _keep(self, record: Record, body: bytes, kind: str) -> None:
        super()._keep(record, body, kind)
        if record.state == "succeeded":
            record.claim |= {"records": record.told.get("records"), "failed_items": record.told.get("failed")}


def build(host: Host) -> Client:
    return Broken(host)
