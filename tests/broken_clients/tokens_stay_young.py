"""A token's age is counted from its last use, not from its first."""

import msgspec

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.operation import Operation
from reference_client.workflow import Workflow

SCENARIO = "token-ages-in-small-steps"
CAUGHT_BY = "no-resend-after-key-lifetime"


class Broken(Workflow):
    def token_is_alive(self, operation: Operation, now: float) -> bool:
        last = operation.failure.at if operation.failure is not None else operation.first_sent_at
        return super().token_is_alive(msgspec.structs.replace(operation, first_sent_at=last), now)


def build(host: Host) -> Client:
    return build_with(host, workflow=Broken)
