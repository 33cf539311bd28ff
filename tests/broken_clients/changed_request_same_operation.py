"""A changed request under a known operation id replaces the old one, and is sent with the old token."""

from collections.abc import Mapping
from typing import Any

import msgspec

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.adapters.protocol import Request
from reference_client.operation import Call, Operation, canonical_json
from reference_client.workflow import Workflow
from tests.broken_clients._parts import story

SCENARIO = story("changed-submit-while-unknown")
CAUGHT_BY = "changed-request-is-new-operation"
ALSO_CAUGHT_BY = ("changed-submit-refused",)


class Broken(Workflow):
    latest: bytes | None = None

    def same_request(self, operation: Operation, request: Mapping[str, Any]) -> None:
        self.latest = canonical_json({**request, "client_reference": operation.client_reference})

    def request(self, operation: Operation) -> Request:
        request = super().request(operation)
        if self.latest is None or operation.in_flight is None or operation.in_flight.call is not Call.CREATE:
            return request
        return msgspec.structs.replace(request, body=self.latest)


def build(host: Host) -> Client:
    return build_with(host, workflow=Broken)
