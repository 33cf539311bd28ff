"""The body is not stored: a re-send serialises the request once more, with other white space."""

import msgspec

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.adapters.protocol import Request
from reference_client.operation import Call, Operation
from reference_client.workflow import Workflow

SCENARIO = "lost-create-response"
CAUGHT_BY = "same-request-on-retry"


class Broken(Workflow):
    def request(self, operation: Operation) -> Request:
        request = super().request(operation)
        if operation.in_flight is None or operation.in_flight.call is not Call.CREATE or operation.create_attempts < 2:
            return request
        return msgspec.structs.replace(request, body=(request.body or b"") + b" ")


def build(host: Host) -> Client:
    return build_with(host, workflow=Broken)
