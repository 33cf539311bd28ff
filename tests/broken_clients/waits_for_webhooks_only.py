"""Where there are webhooks nothing is polled: the webhook will come."""

import httpx2

from harness.subject import Client, Host
from tests.correct_clients._plain import PlainClient, Record

SCENARIO = "lost-webhook"
CAUGHT_BY = "reaches-rest-after-faults-stop"


class Broken(PlainClient):
    def _later(self, record: Record, answer: httpx2.Response | None) -> None:
        super()._later(record, answer)
        if record.state == "observing" and self.contract["webhooks"]["enabled"]:
            record.due_at = float("inf")

    def _deadline_passed(self, record: Record, now: float) -> bool:
        return record.due_at < float("inf") and super()._deadline_passed(record, now)


def build(host: Host) -> Client:
    return Broken(host)
