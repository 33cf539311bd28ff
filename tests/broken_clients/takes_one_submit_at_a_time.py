"""A submit that comes while the worker is busy with another one is dropped, and the caller is told nothing."""

from collections.abc import Mapping
from typing import Any

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from tests.broken_clients._parts import Subject

SCENARIO = "one-fails-one-succeeds"
CAUGHT_BY = "every-operation-is-claimed"


class Broken(Subject):
    async def submit(self, operation: str, request: Mapping[str, Any]) -> None:
        if all(claim.at_rest for claim in await self.inner.report()):
            await super().submit(operation, request)


def build(host: Host) -> Client:
    return Broken(host, build_with(host))
