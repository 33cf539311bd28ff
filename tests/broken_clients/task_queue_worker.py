"""Written from scratch, as tasks of a queue: the queue delivers a task again when its worker went silent, and the
task begins anew."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import httpx2

from harness.subject import Claim, Client, Host

SCENARIO = "one-long-job-two-workers"
CAUGHT_BY = "no-create-once-accepted"
ALSO_CAUGHT_BY = (
    "obeys-retry-after",
    "trace-on-every-call",
    "one-observer-per-job",
    "no-poll-after-terminal",
)


VISIBILITY_S = 1.5
"""After this time without an acknowledgement the queue hands the task to whoever asks."""


class Worker:
    """Takes tasks from a queue on the shared disk; a task is the whole life of an operation."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._tasks: dict[str, dict[str, Any]] = host.disk.setdefault("tasks", {})

    async def submit(self, operation: str, request: Mapping[str, Any]) -> None:
        token = f"{self._host.random.getrandbits(128):032x}"
        self._tasks.setdefault(operation, {"request": dict(request), "token": token, "hidden": 0.0, "job": None})

    async def run(self) -> None:
        busy: set[asyncio.Task[None]] = set()
        while True:
            now = self._host.clock.now()
            for operation, task in self._tasks.items():
                if task.get("done") is None and task["hidden"] <= now:
                    task["hidden"] = now + VISIBILITY_S
                    busy.add(asyncio.create_task(self._perform(operation, task)))
            await self._host.clock.sleep(0.25)

    async def _perform(self, operation: str, task: dict[str, Any]) -> None:
        headers = {"authorization": self._host.authorization, "idempotency-key": task["token"]}
        async with httpx2.AsyncClient(
            transport=self._host.transport, base_url=self._host.base_url, headers=headers, timeout=1
        ) as client:
            try:
                task["job"] = job = (await client.post("/v1/jobs", json=task["request"])).json()["id"]
                while (state := (await client.get(f"/v1/jobs/{job}")).json()["status"]) in {"queued", "running"}:
                    await self._host.clock.sleep(1)
                await client.get(f"/v1/jobs/{job}/result")
            except httpx2.TransportError:
                return  # the queue will deliver it again
            task["done"] = state

    async def cancel(self, operation: str, who: str, why: str) -> None:
        """Nobody thought of that."""

    async def report(self) -> Sequence[Claim]:
        return [
            Claim(operation=operation, state=task.get("done") or "observing", remote_job=task["job"])
            for operation, task in self._tasks.items()
        ]


def build(host: Host) -> Client:
    return Worker(host)
