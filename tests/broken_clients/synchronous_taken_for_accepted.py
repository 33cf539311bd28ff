"""A create that is answered with the finished job is recorded as accepted, and polled."""

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.adapters.jobs import JobsAdapter
from reference_client.adapters.protocol import Accepted, Answer, Completed, CreateMeaning

SCENARIO = "synchronous-create"
CAUGHT_BY = "synchronous-success-is-no-acceptance"


class Broken(JobsAdapter):
    def read_create(self, answer: Answer) -> CreateMeaning:
        meaning = super().read_create(answer)
        return Accepted(meaning.job, None, meaning.replayed) if isinstance(meaning, Completed) else meaning


def build(host: Host) -> Client:
    return build_with(host, adapter=Broken)
