"""The lease is looked at before a call, and not once its answer is there: who slept over it acts on it all the same,
over what its successor has done.
"""

from harness.subject import Client, Host
from tests.correct_clients._plain import PlainClient, Record

SCENARIO = "stale-lease-at-the-end"
CAUGHT_BY = "one-time-result-read-once"
ALSO_CAUGHT_BY = ("finished-result-not-lost",)


class Broken(PlainClient):
    def _is_still_held(self, record: Record, until: float) -> bool:
        return True


def build(host: Host) -> Client:
    return Broken(host)
