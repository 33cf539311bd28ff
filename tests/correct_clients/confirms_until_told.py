"""A job that has succeeded is read once more before it is believed, and again where that came to nothing."""

from collections.abc import Mapping
from typing import Any, Final

from harness.subject import Client, Host
from tests.correct_clients._plain import PlainClient, Record

TRIES: Final = 3
LONGEST_S: Final = 1.5  # of a wait between them: well within the lease


class Confirming(PlainClient):
    async def _ended(self, record: Record, job: Mapping[str, Any]) -> None:
        for _ in range(TRIES if job["status"] == "succeeded" else 0):
            answer = await self._call(record, "GET", f"/v1/jobs/{record.job}")
            if self._job(answer, {200}) is not None:
                break
            self._later(record, answer)
            wait_s = record.due_at - self.now()
            if wait_s > LONGEST_S:
                break
            await self.host.clock.sleep(wait_s)
        await super()._ended(record, job)


def build(host: Host) -> Client:
    return Confirming(host)
