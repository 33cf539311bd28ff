"""That a request is too large is taken for a passing trouble: the same bytes are sent again."""

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.adapters.jobs import JobsAdapter
from reference_client.adapters.protocol import Ambiguous, Answer, CreateMeaning

SCENARIO = "create-too-large"
CAUGHT_BY = "no-create-after-rejection"


class Broken(JobsAdapter):
    def read_create(self, answer: Answer) -> CreateMeaning:
        return Ambiguous("too_large", "413") if answer.status == 413 else super().read_create(answer)


def build(host: Host) -> Client:
    return build_with(host, adapter=Broken)
