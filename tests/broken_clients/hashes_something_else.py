"""The checksum that is kept is not that of the bytes that came."""

import hashlib

import msgspec

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.adapters.protocol import Retrieved
from reference_client.operation import CollectedResult, Operation
from reference_client.workflow import Workflow

SCENARIO = "happy-path"
CAUGHT_BY = "result-matches-provider"


class Broken(Workflow):
    def judge(self, operation: Operation, retrieved: Retrieved, location: str) -> CollectedResult:
        result = super().judge(operation, retrieved, location)
        return msgspec.structs.replace(result, sha256=hashlib.sha256(retrieved.body + b"\n").hexdigest())


def build(host: Host) -> Client:
    return build_with(host, workflow=Broken)
