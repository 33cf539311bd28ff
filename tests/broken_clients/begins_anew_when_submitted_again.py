"""A submit of an operation that has ended is taken for a new one: the record is kept only while there is work to do."""

from collections.abc import Mapping
from typing import Any

from harness.subject import REST_STATES, Client, Host
from tests.correct_clients._plain import PlainClient

SCENARIO = "submitted-again-when-done"
CAUGHT_BY = "one-job-per-operation"
ALSO_CAUGHT_BY = ("same-token-on-retry", "no-create-once-accepted", "one-trace-per-operation")


class Broken(PlainClient):
    async def submit(self, operation: str, request: Mapping[str, Any]) -> None:
        if operation in self.records and self.records[operation].state in REST_STATES:
            del self.records[operation]
        await super().submit(operation, request)


def build(host: Host) -> Client:
    return Broken(host)
