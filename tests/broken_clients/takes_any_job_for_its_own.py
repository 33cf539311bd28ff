"""The id in a status answer is not compared with the one that was asked for, nor whose job it is."""

import msgspec

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.adapters.protocol import Answer, JobReport
from reference_client.steps import Draft
from reference_client.workflow import Workflow

SCENARIO = "status-of-another-job"
CAUGHT_BY = "succeeded-only-if-remote-succeeded"
ALSO_CAUGHT_BY = ("result-read-only-after-success",)


class Broken(Workflow):
    def _observe(self, draft: Draft, answer: Answer, report: JobReport) -> None:
        mine = msgspec.structs.replace(report, job_id=draft.operation.remote_job_id or "", client_reference=None)
        super()._observe(draft, answer, mine)


def build(host: Host) -> Client:
    return build_with(host, workflow=Broken)
