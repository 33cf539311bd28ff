"""Of the signatures that a webhook bears only the first is compared."""

from collections.abc import Mapping

from harness.subject import Client, Host
from tests.correct_clients._plain import PlainClient

SCENARIO = "webhook-secret-rotated"
CAUGHT_BY = "genuine-webhook-not-refused"


class Broken(PlainClient):
    async def webhook(self, headers: Mapping[str, str], body: bytes) -> int:
        signature = headers["webhook-signature"].split(" ")[0]
        return await super().webhook({**headers, "webhook-signature": signature}, body)


def build(host: Host) -> Client:
    return Broken(host)
