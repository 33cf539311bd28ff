"""Tokens are eight digits long: enough, somebody thought."""

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.workflow import Workflow

SCENARIO = "happy-path"
CAUGHT_BY = "token-has-128-bits"


class Broken(Workflow):
    def new_token(self) -> str:
        return f"{self.random.getrandbits(32):08x}"


def build(host: Host) -> Client:
    return build_with(host, workflow=Broken)
