"""Without a Retry-After the job is polled every half second, however long it takes."""

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.adapters.protocol import Answer, NoAnswer
from reference_client.workflow import Workflow

SCENARIO = "long-job-without-retry-after"
CAUGHT_BY = "backs-off"


class Broken(Workflow):
    def delay_s(self, answer: Answer | NoAnswer, misses: int) -> tuple[float, bool, str | None]:
        return super().delay_s(answer, 0)


def build(host: Host) -> Client:
    return build_with(host, workflow=Broken)
