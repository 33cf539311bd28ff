"""A finished job is read five times over before its end is believed."""

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.adapters.protocol import JobReport, Phase
from reference_client.workflow import Workflow

SCENARIO = "happy-path"
CAUGHT_BY = "no-poll-after-terminal"


class Broken(Workflow):
    seen = 0

    def steering_phase(self, report: JobReport) -> Phase:
        phase = super().steering_phase(report)
        if phase is Phase.SUCCEEDED and self.seen < 4:
            self.seen += 1
            return Phase.ACTIVE
        return phase


def build(host: Host) -> Client:
    return build_with(host, workflow=Broken)
