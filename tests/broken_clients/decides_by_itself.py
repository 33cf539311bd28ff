"""Whatever a person decides, the operation is ended as failed: somebody had looked into it."""

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from tests.broken_clients._parts import Subject

SCENARIO = "a-person-decides"
CAUGHT_BY = "decision-acted-upon"


class Broken(Subject):
    async def decide(self, operation: str, who: str, why: str, state: str, job: str | None) -> None:
        await self.inner.decide(operation, who, why, "failed", job)


def build(host: Host) -> Client:
    return Broken(host, build_with(host))
