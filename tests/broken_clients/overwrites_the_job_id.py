"""The job id on record is whatever the last answer named."""

import msgspec

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.adapters.jobs import JobsAdapter
from reference_client.adapters.protocol import Answer, JobReport, Request, StatusMeaning
from reference_client.operation import Operation
from reference_client.steps import Draft
from reference_client.workflow import Workflow
from tests.broken_clients._parts import story

SCENARIO = story("two-ids-for-one-token")
CAUGHT_BY = "remote-job-never-overwritten"
ALSO_CAUGHT_BY = (
    "no-create-once-accepted",
    "conflicting-job-ids-stop-everything",
    "conflicting-job-ids-need-a-human",
)


class Again(JobsAdapter):
    def status(self, operation: Operation) -> Request:
        return self.create(operation) if operation.polls == 0 else super().status(operation)

    def read_status(self, answer: Answer) -> StatusMeaning:
        return super().read_status(msgspec.structs.replace(answer, status=200))


class Broken(Workflow):
    def _observe(self, draft: Draft, answer: Answer, report: JobReport) -> None:
        draft.set(remote_job_id=report.job_id)
        super()._observe(draft, answer, report)


def build(host: Host) -> Client:
    return build_with(host, workflow=Broken, adapter=Again)
