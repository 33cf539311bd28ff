"""The trace is that of the process, as a tracer gives it that nobody told where an operation begins."""

from collections.abc import Mapping
from typing import Any

from harness.subject import Client, Host
from tests.correct_clients._plain import PlainClient

SCENARIO = "two-workers-one-store"
CAUGHT_BY = "one-trace-per-operation"


class Broken(PlainClient):
    async def submit(self, operation: str, request: Mapping[str, Any]) -> None:
        await super().submit(operation, request)
        self.records[operation].trace = "4bf92f3577b34da6a3ce929d0e0e4736"


def build(host: Host) -> Client:
    return Broken(host)
