"""A webhook's signature is checked where it bears one."""

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.webhooks import Verifier

SCENARIO = "unsigned-webhook"
CAUGHT_BY = "forged-webhook-refused"
ALSO_CAUGHT_BY = (
    "forged-webhook-changes-nothing",
    "obeys-retry-after",
)


class Broken(Verifier):
    def is_signed(self, event_id: str, stamp: str, body: bytes, signatures: str) -> bool:
        return not signatures or super().is_signed(event_id, stamp, body, signatures)


def build(host: Host) -> Client:
    return build_with(host, verifier=Broken)
