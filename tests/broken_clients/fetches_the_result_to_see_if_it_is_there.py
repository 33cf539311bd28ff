"""The result is asked for after the first poll, finished or not."""

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.adapters.protocol import JobReport, Phase
from reference_client.workflow import Workflow
from tests.broken_clients._parts import story

SCENARIO = story("job-ends-after-a-while")
CAUGHT_BY = "result-read-only-after-success"
ALSO_CAUGHT_BY = ("succeeded-only-if-remote-succeeded",)


class Broken(Workflow):
    def steering_phase(self, report: JobReport) -> Phase:
        return Phase.SUCCEEDED


def build(host: Host) -> Client:
    return build_with(host, workflow=Broken)
