"""Written from scratch, as a script: create, then read the status until it is succeeded, then take the result."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import httpx2

from harness.subject import Claim, Client, Host

SCENARIO = "lost-create-response"
CAUGHT_BY = "one-job-per-operation"
ALSO_CAUGHT_BY = (
    "same-token-on-retry",
    "trace-on-every-call",
    "obeys-retry-after",
)


class Script:
    """One coroutine for each operation, all in memory."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._claims: dict[str, Claim] = {}
        self._running: set[asyncio.Task[None]] = set()

    async def submit(self, operation: str, request: Mapping[str, Any]) -> None:
        task = asyncio.create_task(self._see_through(operation, request))
        self._running.add(task)

    async def _see_through(self, operation: str, request: Mapping[str, Any]) -> None:
        self._claims[operation] = Claim(operation=operation, state="create_pending")
        auth = {"authorization": self._host.authorization}
        async with httpx2.AsyncClient(
            transport=self._host.transport, base_url=self._host.base_url, headers=auth, timeout=1
        ) as client:
            created: httpx2.Response | None = None
            while created is None:
                key = f"{self._host.random.getrandbits(128):032x}"  # somebody read that creates want one
                try:
                    created = await client.post("/v1/jobs", json=dict(request), headers={"idempotency-key": key})
                except httpx2.TransportError:
                    await self._host.clock.sleep(1)
            job = created.json()["id"]
            self._claims[operation] = Claim(operation=operation, state="observing", remote_job=job)
            while (await client.get(f"/v1/jobs/{job}")).json()["status"] != "succeeded":
                await self._host.clock.sleep(1)
            await client.get(f"/v1/jobs/{job}/result")
            self._claims[operation] = Claim(operation=operation, state="succeeded", remote_job=job)

    async def cancel(self, operation: str, who: str, why: str) -> None:
        """Nobody thought of that."""

    async def report(self) -> Sequence[Claim]:
        return list(self._claims.values())


def build(host: Host) -> Client:
    return Script(host)
