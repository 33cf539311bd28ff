"""Written from scratch, as a helper that blocks: everything that goes wrong is tried again from the beginning,
five times, under the same token."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import httpx2

from harness.subject import Claim, Client, Host

SCENARIO = "one-bad-gateway-in-a-long-wait"
CAUGHT_BY = "no-create-once-accepted"
ALSO_CAUGHT_BY = (
    "obeys-retry-after",
    "trace-on-every-call",
)


class Helper:
    """``fetch_report(request)``: returns when it is there, raises when it is not."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._claims: dict[str, Claim] = {}
        self._running: set[asyncio.Task[None]] = set()

    async def submit(self, operation: str, request: Mapping[str, Any]) -> None:
        self._running.add(asyncio.create_task(self._fetch_with_retries(operation, request)))

    async def _fetch_with_retries(self, operation: str, request: Mapping[str, Any]) -> None:
        token = f"{self._host.random.getrandbits(128):032x}"
        for _ in range(5):
            try:
                job = await self._fetch(operation, request, token)
            except (httpx2.HTTPError, KeyError):
                await self._host.clock.sleep(0.2)
            else:
                self._claims[operation] = Claim(operation=operation, state="succeeded", remote_job=job)
                return
        self._claims[operation] = Claim(operation=operation, state="failed")

    async def _fetch(self, operation: str, request: Mapping[str, Any], token: str) -> str:
        self._claims[operation] = Claim(operation=operation, state="observing")
        headers = {"authorization": self._host.authorization, "idempotency-key": token}
        async with httpx2.AsyncClient(
            transport=self._host.transport, base_url=self._host.base_url, headers=headers, timeout=1
        ) as client:
            created = await client.post("/v1/jobs", json=dict(request))
            job = str(created.raise_for_status().json()["id"])
            while (await client.get(f"/v1/jobs/{job}")).raise_for_status().json()["status"] != "succeeded":
                await self._host.clock.sleep(1)
            (await client.get(f"/v1/jobs/{job}/result")).raise_for_status()
            return job

    async def cancel(self, operation: str, who: str, why: str) -> None:
        """Nobody thought of that."""

    async def report(self) -> Sequence[Claim]:
        return list(self._claims.values())


def build(host: Host) -> Client:
    return Helper(host)
