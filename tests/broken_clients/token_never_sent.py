"""The token is minted, stored, and left out of the request."""

import msgspec

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.adapters.jobs import JobsAdapter
from reference_client.adapters.protocol import Request
from reference_client.operation import Operation

SCENARIO = "happy-path"
CAUGHT_BY = "token-where-contract-says"


class Broken(JobsAdapter):
    def create(self, operation: Operation) -> Request:
        return msgspec.structs.replace(super().create(operation), headers={"content-type": "application/json"})


def build(host: Host) -> Client:
    return build_with(host, adapter=Broken)
