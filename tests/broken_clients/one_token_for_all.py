"""The token is a constant of the deployment."""

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.workflow import Workflow

SCENARIO = "two-workers-one-store"
CAUGHT_BY = "one-request-per-token"


class Broken(Workflow):
    def new_token(self) -> str:
        return "0b5f3c9e7a1d48269e0c7b5a3f1d2e4c"


def build(host: Host) -> Client:
    return build_with(host, workflow=Broken)
