"""Every webhook is taken and then answered 500, by a handler that fails on its last line."""

from collections.abc import Mapping

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from tests.broken_clients._parts import Subject

SCENARIO = "running-then-done"
CAUGHT_BY = "genuine-webhook-not-refused"


class Broken(Subject):
    async def webhook(self, headers: Mapping[str, str], body: bytes) -> int:
        await super().webhook(headers, body)
        return 500


def build(host: Host) -> Client:
    return Broken(host, build_with(host))
