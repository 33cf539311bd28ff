"""One result read that comes to nothing, and there is no result."""

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.adapters.protocol import Answer, NoAnswer
from reference_client.operation import Call
from reference_client.steps import Draft
from reference_client.workflow import Workflow

SCENARIO = "result-fails-for-a-while"
CAUGHT_BY = "unavailable-only-after-tries"


class Broken(Workflow):
    def _not_retrieved(self, draft: Draft, answer: Answer | NoAnswer, error: str, detail: str) -> None:
        self.unavailable(draft, f"{error}: {detail}")
        draft.outcome(Call.RESULT, reason=detail)


def build(host: Host) -> Client:
    return build_with(host, workflow=Broken)
