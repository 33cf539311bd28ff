"""All operations share a token, and what the provider answers is not compared with what was asked for."""

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.operation import Operation
from reference_client.workflow import Workflow
from tests.broken_clients._parts import story

SCENARIO = story("two-requests-one-careless-provider")
CAUGHT_BY = "careless-replay-noticed"
ALSO_CAUGHT_BY = ("one-request-per-token", "claims-match-ledger")


class Broken(Workflow):
    def new_token(self) -> str:
        return "0b5f3c9e7a1d48269e0c7b5a3f1d2e4c"

    @staticmethod
    def is_ours(_operation: Operation, _reference: str | None) -> bool:
        return True


def build(host: Host) -> Client:
    return build_with(host, workflow=Broken)
