"""A link to the result that has expired is not asked for anew, though the job's status holds a new one."""

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.adapters.protocol import Answer, Gone
from reference_client.operation import Call
from reference_client.steps import Draft
from reference_client.workflow import Workflow

SCENARIO = "result-link-expired"
CAUGHT_BY = "expired-link-renewed"


class Broken(Workflow):
    def _gone(self, draft: Draft, answer: Answer, meaning: Gone) -> None:
        self.unavailable(draft, meaning.detail)
        draft.outcome(Call.RESULT, reason=meaning.detail)


def build(host: Host) -> Client:
    return build_with(host, workflow=Broken)
