"""The id of a delivery is noted first and its signature looked at next: a forgery makes the event itself old news."""

from collections.abc import Mapping

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from tests.broken_clients._parts import Subject

SCENARIO = "webhook-preempted"
CAUGHT_BY = "final-event-leads-to-a-read"


class Broken(Subject):
    async def webhook(self, headers: Mapping[str, str], body: bytes) -> int:
        known: set[str] = self.host.disk.setdefault("events", set())
        event = {name.lower(): value for name, value in headers.items()}.get("webhook-id", "")
        if event in known:
            return 204
        known.add(event)
        return await super().webhook(headers, body)


def build(host: Host) -> Client:
    return Broken(host, build_with(host))
