"""Being asked to look again at an operation, the client begins it anew."""

from harness.subject import Client, Host
from tests.correct_clients._plain import PlainClient

SCENARIO = "result-deadline-passes"
CAUGHT_BY = "one-job-per-operation"
ALSO_CAUGHT_BY = ("same-token-on-retry", "no-create-once-accepted")


class Broken(PlainClient):
    async def reconcile(self, operation: str, who: str, why: str) -> None:
        record, now = self.records[operation], self.host.clock.now()
        record.token, record.job, record.state = f"{self.host.random.getrandbits(128):032x}", None, "create_pending"
        record.created_at, record.due_at, record.first_sent_at, record.absent = now, now, None, True


def build(host: Host) -> Client:
    return Broken(host)
