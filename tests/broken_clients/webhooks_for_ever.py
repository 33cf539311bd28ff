"""The timestamp of a webhook is not looked at: whoever recorded one can play it back for ever."""

from collections.abc import Mapping

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.webhooks import Verified, Verifier

SCENARIO = "webhooks-at-the-wrong-time"
CAUGHT_BY = "webhook-out-of-time-refused"


class Broken(Verifier):
    def verify(self, headers: Mapping[str, str], body: bytes, *, now: float) -> Verified:
        return super().verify(headers, body, now=float(headers["webhook-timestamp"]))


def build(host: Host) -> Client:
    return build_with(host, verifier=Broken)
