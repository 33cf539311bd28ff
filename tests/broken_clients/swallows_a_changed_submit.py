"""A changed request under a known operation id is taken without a word, and nothing is done about it."""

from collections.abc import Mapping
from typing import Any

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.operation import Operation
from reference_client.workflow import Workflow

SCENARIO = "submitted-twice"
CAUGHT_BY = "changed-submit-refused"


class Broken(Workflow):
    def same_request(self, operation: Operation, request: Mapping[str, Any]) -> None:
        """Anything will do."""


def build(host: Host) -> Client:
    return build_with(host, workflow=Broken)
