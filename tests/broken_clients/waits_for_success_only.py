"""The polling ends when the status is succeeded; that a job may fail was not thought of."""

import msgspec

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.adapters.protocol import JobReport, Phase
from reference_client.config import Timing
from reference_client.workflow import Workflow

SCENARIO = "job-fails"
CAUGHT_BY = "reaches-rest-after-faults-stop"
ALSO_CAUGHT_BY = (
    "no-poll-after-terminal",
    "no-poll-after-result-deadline",
)


class Broken(Workflow):
    def steering_phase(self, report: JobReport) -> Phase:
        phase = super().steering_phase(report)
        return phase if phase is Phase.SUCCEEDED else Phase.ACTIVE


def without_end(timing: Timing) -> Timing:
    return msgspec.structs.replace(timing, result_deadline_s=1e6)


def build(host: Host) -> Client:
    return build_with(host, workflow=Broken, timing=without_end)
