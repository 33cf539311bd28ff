"""The signature of a webhook is not checked."""

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.webhooks import Verifier

SCENARIO = "forged-webhook"
CAUGHT_BY = "forged-webhook-refused"
ALSO_CAUGHT_BY = (
    "forged-webhook-changes-nothing",
    "obeys-retry-after",
)


class Broken(Verifier):
    def is_signed(self, event_id: str, stamp: str, body: bytes, signatures: str) -> bool:
        return True


def build(host: Host) -> Client:
    return build_with(host, verifier=Broken)
