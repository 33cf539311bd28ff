"""A progress of 100 per cent is taken for success."""

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.adapters.protocol import JobReport, Phase
from reference_client.workflow import Workflow

SCENARIO = "misleading-status-reads"
CAUGHT_BY = "succeeded-only-if-remote-succeeded"
ALSO_CAUGHT_BY = ("result-read-only-after-success",)


class Broken(Workflow):
    def steering_phase(self, report: JobReport) -> Phase:
        return Phase.SUCCEEDED if report.progress == 100 else super().steering_phase(report)


def build(host: Host) -> Client:
    return build_with(host, workflow=Broken)
