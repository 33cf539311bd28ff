"""Every worker refreshes every job that it finds in the store, whoever holds the lease."""

import asyncio

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.lifecycle import LocalState
from tests.broken_clients._parts import Subject

SCENARIO = "one-long-job-two-workers"
CAUGHT_BY = "one-observer-per-job"
ALSO_CAUGHT_BY = (
    "observes-only-under-lease",
    "intent-before-outside-call",
    "obeys-retry-after",
    "polls-per-job-limited",
)


class Broken(Subject):
    async def run(self) -> None:
        refresher = asyncio.create_task(self._refresh())
        try:
            await super().run()
        finally:
            refresher.cancel()

    async def _refresh(self) -> None:
        store = self.inner._client._worker.store
        while True:
            await self.host.clock.sleep(0.7)
            for known in await store.operations():
                if known.state is LocalState.OBSERVING:
                    await self.send("GET", f"/v1/jobs/{known.remote_job_id}", trace=known.trace_id)


def build(host: Host) -> Client:
    return Broken(host, build_with(host))
