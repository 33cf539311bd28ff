"""The job is polled twenty times a second."""

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.adapters.protocol import Answer, NoAnswer
from reference_client.workflow import Workflow

SCENARIO = "long-job-without-retry-after"
CAUGHT_BY = "polls-per-job-limited"
ALSO_CAUGHT_BY = ("backs-off",)


class Broken(Workflow):
    def delay_s(self, answer: Answer | NoAnswer, misses: int) -> tuple[float, bool, str | None]:
        _, asked, note = super().delay_s(answer, misses)
        return 0.05, asked, note


def build(host: Host) -> Client:
    return build_with(host, workflow=Broken)
