"""The result deadline is counted from each start of the program."""

from harness.subject import Client, Host
from tests.correct_clients._plain import PlainClient, Record

SCENARIO = "restart-does-not-extend-the-deadline"
CAUGHT_BY = "no-poll-after-result-deadline"


class Broken(PlainClient):
    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.began = self.now()

    def _observe_until(self, record: Record) -> float:
        return max(self.began, record.created_at) + self.timing["result_deadline_s"]


def build(host: Host) -> Client:
    return Broken(host)
