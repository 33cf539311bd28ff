"""An unanswered create is left alone until its deadline has passed, and then given to a person."""

from harness.subject import Client, Host
from tests.correct_clients._plain import PlainClient, Record

SCENARIO = "lost-create-response"
CAUGHT_BY = "human-decision-only-if-stuck"


class Broken(PlainClient):
    async def _create(self, record: Record, now: float) -> None:
        if record.absent:
            await super()._create(record, now)
        elif self._deadline_passed(record, now):
            self._rest(record, "human_decision_required", "nobody knows whether there is a job")
        else:
            record.due_at = record.created_at + self.timing["create_deadline_s"]


def build(host: Host) -> Client:
    return Broken(host)
