"""A 404 on the retry of an unanswered create fails the operation, though the first attempt made its job."""

import msgspec

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.adapters.jobs import JobsAdapter
from reference_client.adapters.protocol import Answer, CreateMeaning, Rejected

SCENARIO = "retry-not-found"
CAUGHT_BY = "failed-only-if-remote-failed"
ALSO_CAUGHT_BY = ("no-orphaned-jobs",)


class Broken(JobsAdapter):
    def read_create(self, answer: Answer) -> CreateMeaning:
        meaning = super().read_create(answer)
        return msgspec.structs.replace(meaning, judges_request=True) if isinstance(meaning, Rejected) else meaning


def build(host: Host) -> Client:
    return build_with(host, adapter=Broken)
