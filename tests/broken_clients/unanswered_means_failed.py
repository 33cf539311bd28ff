"""A create that is not answered has failed, and whoever wants it may submit it again."""

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.adapters.protocol import Answer, NoAnswer
from reference_client.lifecycle import Evidence, LocalState
from reference_client.steps import Draft
from reference_client.workflow import Workflow

SCENARIO = "lost-create-response"
CAUGHT_BY = "no-orphaned-jobs"
ALSO_CAUGHT_BY = ("failed-only-if-remote-failed",)


class Broken(Workflow):
    def _still_unknown(self, draft: Draft, answer: Answer | NoAnswer, error: str, detail: str) -> None:
        draft.move(LocalState.FAILED, Evidence.DEFINITE_REJECTION, cause="the create", reason=f"{error}: {detail}")


def build(host: Host) -> Client:
    return build_with(host, workflow=Broken)
