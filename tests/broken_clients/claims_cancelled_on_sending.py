"""An operation counts as cancelled as soon as the cancel call was answered."""

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.adapters.protocol import Answer, CancelTaken
from reference_client.lifecycle import Evidence, LocalState
from reference_client.steps import Draft
from reference_client.workflow import Workflow

SCENARIO = "cancel-race-completion-wins"
CAUGHT_BY = "cancelled-only-if-confirmed"


class Broken(Workflow):
    def _taken(self, draft: Draft, answer: Answer, meaning: CancelTaken) -> None:
        draft.move(
            LocalState.CANCELLED, Evidence.STATUS_CANCELLED, cause="the cancel call", reason=f"taken: {meaning.detail}"
        )


def build(host: Host) -> Client:
    return build_with(host, workflow=Broken)
