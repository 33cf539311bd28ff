"""Another job id for the same token is taken for a failure of the job."""

import msgspec

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.adapters.jobs import JobsAdapter
from reference_client.adapters.protocol import Answer, JobReport, Request, StatusMeaning
from reference_client.lifecycle import Evidence, LocalState
from reference_client.operation import Operation
from reference_client.steps import Draft
from reference_client.workflow import Workflow
from tests.broken_clients._parts import story

SCENARIO = story("two-ids-for-one-token")
CAUGHT_BY = "conflicting-job-ids-need-a-human"
ALSO_CAUGHT_BY = (
    "no-create-once-accepted",
    "failed-only-if-remote-failed",
)


class Again(JobsAdapter):
    def status(self, operation: Operation) -> Request:
        return self.create(operation) if operation.polls == 0 else super().status(operation)

    def read_status(self, answer: Answer) -> StatusMeaning:
        return super().read_status(msgspec.structs.replace(answer, status=200))


class Broken(Workflow):
    def _observe(self, draft: Draft, answer: Answer, report: JobReport) -> None:
        if report.job_id == draft.operation.remote_job_id:
            super()._observe(draft, answer, report)
            return
        draft.set(explanation="two job ids")
        draft.move(
            LocalState.FAILED, Evidence.PROVIDER_REPORTS_FAILURE, cause="a status read", reason="not the same job"
        )


def build(host: Host) -> Client:
    return build_with(host, workflow=Broken, adapter=Again)
