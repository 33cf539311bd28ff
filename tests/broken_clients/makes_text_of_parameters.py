"""The request goes through a form in which every parameter is a text, and comes out so."""

from collections.abc import Mapping
from typing import Any

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.adapters.jobs import JobsAdapter

SCENARIO = "request-sent-as-given"
CAUGHT_BY = "job-is-what-was-asked-for"


class Broken(JobsAdapter):
    def prepare(self, operation_id: str, request: Mapping[str, Any]) -> tuple[bytes, str]:
        texts = {name: str(value) for name, value in request["parameters"].items()}
        return super().prepare(operation_id, {**request, "parameters": texts})


def build(host: Host) -> Client:
    return build_with(host, adapter=Broken)
