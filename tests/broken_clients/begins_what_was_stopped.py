"""A look-up proves that there is no job, and the create is made anew, though a stop was asked for meanwhile."""

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.adapters.protocol import Answer
from reference_client.steps import Draft
from reference_client.workflow import Workflow

SCENARIO = "stopped-and-proved-absent"
CAUGHT_BY = "nothing-begun-after-a-stop"


class Broken(Workflow):
    def _absent(self, draft: Draft, answer: Answer) -> None:
        stop = draft.operation.stop
        draft.set(stop=None)
        super()._absent(draft, answer)
        draft.set(stop=stop)


def build(host: Host) -> Client:
    return build_with(host, workflow=Broken)
