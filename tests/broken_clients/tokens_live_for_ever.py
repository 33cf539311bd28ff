"""The token is used again however old it is; the provider has forgotten it."""

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.operation import Operation
from reference_client.workflow import Workflow
from tests.broken_clients._parts import story

SCENARIO = story("short-key-lifetime")
CAUGHT_BY = "no-resend-after-key-lifetime"
ALSO_CAUGHT_BY = ("one-job-per-operation",)


class Broken(Workflow):
    def token_is_alive(self, operation: Operation, now: float) -> bool:
        return True


def build(host: Host) -> Client:
    return build_with(host, workflow=Broken)
