"""A create that was not answered counts as accepted, under a job id made up from the token."""

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.adapters.protocol import Answer, NoAnswer
from reference_client.lifecycle import Evidence, LocalState
from reference_client.steps import Draft
from reference_client.workflow import Workflow

SCENARIO = "lost-create-response"
CAUGHT_BY = "accepted-only-if-answered"
ALSO_CAUGHT_BY = (
    "claims-match-ledger",
    "no-orphaned-jobs",
)


class Broken(Workflow):
    def conclude_create(self, draft: Draft, answer: Answer | NoAnswer) -> None:
        if not isinstance(answer, NoAnswer):
            super().conclude_create(draft, answer)
            return
        draft.set(remote_job_id=f"job_{draft.operation.idempotency_token[:16]}", next_attempt_at=draft.now + 1)
        draft.move(
            LocalState.ACCEPTED, Evidence.ANSWER_NAMES_JOB, cause="the create was sent", reason="it will have arrived"
        )


def build(host: Host) -> Client:
    return build_with(host, workflow=Broken)
