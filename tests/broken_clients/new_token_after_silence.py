"""The token is not stored: whatever is sent again carries a fresh one, even if no harm comes of it this time."""

import msgspec

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.adapters.protocol import Request
from reference_client.operation import Call, Operation
from reference_client.workflow import Workflow

SCENARIO = "lost-create-request"
CAUGHT_BY = "same-token-on-retry"


class Broken(Workflow):
    def request(self, operation: Operation) -> Request:
        request = super().request(operation)
        if operation.in_flight is None or operation.in_flight.call is not Call.CREATE or operation.create_attempts < 2:
            return request
        headers = {**request.headers, "idempotency-key": f'"{self.new_token()}"'}
        return msgspec.structs.replace(request, headers=headers)


def build(host: Host) -> Client:
    return build_with(host, workflow=Broken)
