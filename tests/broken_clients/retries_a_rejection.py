"""A definite rejection of the create is taken for a hiccup, and the same request sent again and again."""

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.adapters.jobs import JobsAdapter
from reference_client.adapters.protocol import Ambiguous, Answer, Conflict, CreateMeaning, Rejected

SCENARIO = "retry-refused"
CAUGHT_BY = "no-create-after-rejection"


class Broken(JobsAdapter):
    def read_create(self, answer: Answer) -> CreateMeaning:
        meaning = super().read_create(answer)
        return Ambiguous(meaning.error, meaning.detail) if isinstance(meaning, Rejected | Conflict) else meaning


def build(host: Host) -> Client:
    return build_with(host, adapter=Broken)
