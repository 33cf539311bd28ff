"""What a person decides is taken as a comment: it is kept, and nothing comes of it."""

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from tests.broken_clients._parts import Subject

SCENARIO = "a-person-decides"
CAUGHT_BY = "decision-acted-upon"


class Broken(Subject):
    async def decide(self, operation: str, who: str, why: str, state: str, job: str | None) -> None:
        self.host.disk[f"comment on {operation}"] = f"{who}: {why}"


def build(host: Host) -> Client:
    return Broken(host, build_with(host))
