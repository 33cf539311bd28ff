"""Retry-After is not read: the polling keeps to its own back-off."""

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.adapters.protocol import Answer, NoAnswer
from reference_client.polling import backoff_s
from reference_client.workflow import Workflow

SCENARIO = "happy-path"
CAUGHT_BY = "obeys-retry-after"


class Broken(Workflow):
    def delay_s(self, answer: Answer | NoAnswer, misses: int) -> tuple[float, bool, str | None]:
        timing = self.timing
        delay = backoff_s(
            misses, first_s=timing.poll_first_s, cap_s=timing.poll_cap_s, jitter=timing.poll_jitter, random=self.random
        )
        return delay, False, None


def build(host: Host) -> Client:
    return build_with(host, workflow=Broken)
