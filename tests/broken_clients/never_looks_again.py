"""That a person wants an operation looked at again is taken without a word, and nothing comes of it."""

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from tests.broken_clients._parts import Subject

SCENARIO = "result-deadline-passes"
CAUGHT_BY = "reconcile-command-acted-upon"


class Broken(Subject):
    async def reconcile(self, operation: str, who: str, why: str) -> None:
        """Nobody thought of that."""


def build(host: Host) -> Client:
    return Broken(host, build_with(host))
