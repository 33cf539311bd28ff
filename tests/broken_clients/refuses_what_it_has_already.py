"""A webhook that is known already is answered with an error."""

from collections.abc import Mapping

from harness.subject import Client, Host
from harness.subjects.reference import ReferenceSubject, build_with
from tests.broken_clients._parts import Subject

SCENARIO = "duplicate-webhook"
CAUGHT_BY = "duplicate-webhook-answered-2xx"


class Broken(Subject):
    def __init__(self, host: Host, inner: ReferenceSubject) -> None:
        super().__init__(host, inner)
        self._seen: set[str] = set()

    async def webhook(self, headers: Mapping[str, str], body: bytes) -> int:
        event = headers["webhook-id"]
        if event in self._seen:
            return 409
        self._seen.add(event)
        return await super().webhook(headers, body)


def build(host: Host) -> Client:
    return Broken(host, build_with(host))
