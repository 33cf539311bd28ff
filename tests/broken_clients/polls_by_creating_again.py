"""The job is polled by sending its create again: the token makes it harmless, as long as all goes well."""

import msgspec

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.adapters.jobs import JobsAdapter
from reference_client.adapters.protocol import Answer, Request, StatusMeaning
from reference_client.operation import Operation

SCENARIO = "happy-path"
CAUGHT_BY = "no-create-once-accepted"


class Broken(JobsAdapter):
    def status(self, operation: Operation) -> Request:
        return self.create(operation) if operation.polls == 0 else super().status(operation)

    def read_status(self, answer: Answer) -> StatusMeaning:
        return super().read_status(msgspec.structs.replace(answer, status=200))


def build(host: Host) -> Client:
    return build_with(host, adapter=Broken)
