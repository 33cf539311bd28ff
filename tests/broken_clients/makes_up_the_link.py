"""The result's address is made up of the job's id, though the provider hands out signed links to it."""

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.adapters.jobs import JobsAdapter
from reference_client.adapters.protocol import Request
from reference_client.operation import Operation

SCENARIO = "lost-create-response-azure-like"
CAUGHT_BY = "expired-link-renewed"


class Broken(JobsAdapter):
    def result(self, operation: Operation) -> Request:
        return Request(method="GET", path=f"/v1/jobs/{operation.remote_job_id}/result")


def build(host: Host) -> Client:
    return build_with(host, adapter=Broken)
