"""A stop command is sent on to the provider, whatever is known of the job."""

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from tests.broken_clients._parts import Subject

SCENARIO = "stop-asked-for-late"
CAUGHT_BY = "no-cancel-after-terminal"
ALSO_CAUGHT_BY = (
    "no-call-at-rest",
    "observes-only-under-lease",
    "cancel-intent-recorded-first",
)


class Broken(Subject):
    async def cancel(self, operation: str, who: str, why: str) -> None:
        await super().cancel(operation, who, why)
        known = await self.inner._client._worker.store.load(operation)
        await self.send("DELETE", f"/v1/jobs/{known.remote_job_id}", trace=known.trace_id)


def build(host: Host) -> Client:
    return Broken(host, build_with(host))
