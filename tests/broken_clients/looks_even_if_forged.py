"""A forged webhook is refused, and the job is polled at once all the same."""

from collections.abc import Mapping

from harness.subject import Client, Host
from harness.subjects.reference import ReferenceSubject, build_with
from reference_client.webhooks import Verifier, WebhookRejected
from tests.broken_clients._parts import Subject

SCENARIO = "forged-webhook"
CAUGHT_BY = "forged-webhook-changes-nothing"
ALSO_CAUGHT_BY = ("obeys-retry-after",)


class Lax(Verifier):
    def is_signed(self, event_id: str, stamp: str, body: bytes, signatures: str) -> bool:
        return True


class Broken(Subject):
    def __init__(self, host: Host, inner: ReferenceSubject, strict: Verifier) -> None:
        super().__init__(host, inner)
        self._strict = strict

    async def webhook(self, headers: Mapping[str, str], body: bytes) -> int:
        status = await super().webhook(headers, body)
        try:
            self._strict.verify(headers, body, now=self.host.clock.now())
        except WebhookRejected as rejection:
            return rejection.status
        return status


def build(host: Host) -> Client:
    return Broken(host, build_with(host, verifier=Lax), Verifier(host.webhook_secrets))
