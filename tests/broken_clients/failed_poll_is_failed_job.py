"""A status read that comes to nothing fails the operation."""

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.adapters.protocol import Answer, NoAnswer
from reference_client.lifecycle import Evidence, LocalState
from reference_client.steps import Draft
from reference_client.workflow import Workflow

SCENARIO = "one-bad-gateway-in-a-long-wait"
CAUGHT_BY = "failed-only-if-remote-failed"


class Broken(Workflow):
    def _nothing_learned(self, draft: Draft, answer: Answer | NoAnswer, error: str, detail: str) -> None:
        draft.move(LocalState.FAILED, Evidence.PROVIDER_REPORTS_FAILURE, cause="a status read", reason=detail)


def build(host: Host) -> Client:
    return build_with(host, workflow=Broken)
