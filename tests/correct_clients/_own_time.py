"""A client that is right as far as it can know: it counts everything but its leases by the clock of its host."""

from harness.subject import Client, Host
from tests.correct_clients._plain import PlainClient


class OwnTime(PlainClient):
    def now(self) -> float:
        return self.host.clock.now()


class TrustsDates(OwnTime):
    """It holds a Retry-After that is a date against its own clock, not against the answer's Date."""

    heeds_date = False


def build(host: Host) -> Client:
    return OwnTime(host)


def build_trusting_dates(host: Host) -> Client:
    return TrustsDates(host)
