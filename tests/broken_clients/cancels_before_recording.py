"""The cancel call goes out at once, and the intent is recorded when it has been answered."""

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.operation import Operation
from reference_client.workflow import Workflow
from tests.broken_clients._parts import Subject

SCENARIO = "cancel-race-cancel-wins"
CAUGHT_BY = "cancel-intent-recorded-first"
ALSO_CAUGHT_BY = ("observes-only-under-lease",)


class Broken(Workflow):
    def may_call_cancel(self, operation: Operation) -> bool:
        return False


class Hasty(Subject):
    async def cancel(self, operation: str, who: str, why: str) -> None:
        known = await self.inner._client._worker.store.load(operation)
        await self.send("DELETE", f"/v1/jobs/{known.remote_job_id}", trace=known.trace_id)
        await super().cancel(operation, who, why)


def build(host: Host) -> Client:
    return Hasty(host, build_with(host, workflow=Broken))
