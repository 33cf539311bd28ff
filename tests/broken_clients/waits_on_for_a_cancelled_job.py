"""That a provider may cancel a job by itself was not thought of: its end is seen, and waited for until the deadline."""

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.adapters.protocol import JobReport
from reference_client.lifecycle import Evidence, LocalState
from reference_client.steps import Draft
from reference_client.workflow import Workflow

SCENARIO = "cancelled-by-the-provider"
CAUGHT_BY = "end-that-was-read-is-claimed"


class Broken(Workflow):
    def _end(self, draft: Draft, report: JobReport, after: LocalState, evidence: Evidence) -> None:
        if after is LocalState.CANCELLED and draft.operation.stop is None:
            draft.set(next_attempt_at=draft.operation.result_deadline)
        else:
            super()._end(draft, report, after, evidence)


def build(host: Host) -> Client:
    return build_with(host, workflow=Broken)
