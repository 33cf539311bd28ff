"""What was commanded is on disk, what was done about it is not: a restarted worker cancels again."""

from harness.subject import Client, Host
from tests.correct_clients._plain import PlainClient

SCENARIO = "restart-while-cancelling"
CAUGHT_BY = "one-cancel-per-intent"


class Broken(PlainClient):
    def __init__(self, host: Host) -> None:
        super().__init__(host)
        for record in self.records.values():
            if record.state == "observing":
                record.cancel_at = record.stop_at


def build(host: Host) -> Client:
    return Broken(host)
