"""The result deadline counts from the answer that named the job: so long the job may take, however long the create."""

from harness.subject import Client, Host
from tests.correct_clients._plain import PlainClient, Record


class Counting(PlainClient):
    def _observe_until(self, record: Record) -> float:
        if record.stop_at is not None:
            return super()._observe_until(record)
        return record.accepted_at + self.timing["result_deadline_s"]


def build(host: Host) -> Client:
    return Counting(host)
