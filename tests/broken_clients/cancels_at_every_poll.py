"""As long as the job is not cancelled, each poll comes with one more cancel call."""

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.adapters.protocol import Answer, JobReport
from reference_client.steps import Draft
from reference_client.workflow import Workflow
from tests.broken_clients._parts import story

SCENARIO = story("cancel-takes-long")
CAUGHT_BY = "one-cancel-per-intent"


class Broken(Workflow):
    def _observe(self, draft: Draft, answer: Answer, report: JobReport) -> None:
        draft.set(cancel_answered=False)
        super()._observe(draft, answer, report)


def build(host: Host) -> Client:
    return build_with(host, workflow=Broken)
