"""One worker does everything, under one lease for the whole process; the others stand by."""

from harness.subject import Client, Host
from tests.correct_clients._plain import Gone, PlainClient, Record


class Leader(PlainClient):
    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.lead: dict[str, float | str | None] = host.disk.setdefault("lead", {"who": None, "until": 0.0})

    async def _look_at(self, record: Record) -> None:
        now, until = self.now(), self.lead["until"]
        assert isinstance(until, float)
        if self.lead["who"] != self.host.worker and until > now:
            raise Gone
        self.lead.update(who=self.host.worker, until=now + self.lease_s)
        if record.owner is not None:
            record.owner, record.owned_until = self.host.worker, 0.0
        await super()._look_at(record)


def build(host: Host) -> Client:
    return Leader(host)
