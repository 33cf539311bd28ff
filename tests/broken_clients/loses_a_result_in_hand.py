"""A result that came is not stored, and then said to be unavailable."""

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.adapters.protocol import Retrieved
from reference_client.steps import Draft
from reference_client.workflow import Workflow

SCENARIO = "happy-path"
CAUGHT_BY = "finished-result-not-lost"


class Broken(Workflow):
    def keep(self, draft: Draft, retrieved: Retrieved) -> None:
        self.unavailable(draft, "there is nowhere to put it")


def build(host: Host) -> Client:
    return build_with(host, workflow=Broken)
