"""People may have a resting operation looked at again, and decide about one that waits for them."""

from harness.subject import Client, Host, Refused
from tests.correct_clients._plain import PlainClient, Record

AGAIN = {
    "result_timed_out": "observing",
    "cancellation_unconfirmed": "observing",
    "result_unavailable": "result_collecting",
    "result_validation_failed": "result_collecting",
}
LATER = {"create_pending": "create_unknown", "reconciliation": "create_unknown", "accepted": "observing"}


class Heeding(PlainClient):
    async def reconcile(self, operation: str, who: str, why: str) -> None:
        record = self.records.get(operation)
        if record is None or record.state not in AGAIN:
            raise Refused("there is nothing to look at again")
        record.state = AGAIN[record.state]
        self._from_now(record)

    async def decide(self, operation: str, who: str, why: str, state: str, job: str | None) -> None:
        record = self.records.get(operation)
        if record is None or record.state != "human_decision_required":
            raise Refused("it waits for no decision")
        if state in {"succeeded", "cancel_requested", "cancelling", "result_timed_out", "cancellation_unconfirmed"}:
            raise Refused("nobody can decide that here")
        record.job = job or record.job
        record.state = LATER.get(state, state)
        if state == "create_pending":
            record.absent = True
        self._from_now(record)

    def _from_now(self, record: Record) -> None:
        now = self.now()
        record.created_at = record.accepted_at = record.due_at = now
        record.misses, record.rereads, record.claim = 0, 0, {}
        record.collect_until = now + self.timing["create_deadline_s"]
        if record.stop_at is not None and record.state == "observing":
            record.stop_at = now
        if record.first_sent_at is not None and record.absent:
            record.first_sent_at = None


def build(host: Host) -> Client:
    return Heeding(host)
