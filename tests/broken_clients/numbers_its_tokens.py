"""Tokens are long, and all the same but for a number that counts the operations."""

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.workflow import Workflow

SCENARIO = "one-fails-one-succeeds"
CAUGHT_BY = "token-has-128-bits"


def build(host: Host) -> Client:
    class Broken(Workflow):
        def new_token(self) -> str:
            number = host.disk["tokens"] = host.disk.get("tokens", 0) + 1
            return f"nightly-reports-of-the-emea-region-{number:08d}"

    return build_with(host, workflow=Broken)
