"""That the token of a retry is taken already counts as a rejection of the request."""

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.adapters.jobs import JobsAdapter
from reference_client.adapters.protocol import Answer, Conflict, CreateMeaning, Rejected

SCENARIO = "retry-refused"
CAUGHT_BY = "failed-only-if-remote-failed"
ALSO_CAUGHT_BY = ("no-orphaned-jobs",)


class Broken(JobsAdapter):
    def read_create(self, answer: Answer) -> CreateMeaning:
        meaning = super().read_create(answer)
        if isinstance(meaning, Conflict):
            return Rejected(meaning.error, meaning.detail, judges_request=True)
        return meaning


def build(host: Host) -> Client:
    return build_with(host, adapter=Broken)
