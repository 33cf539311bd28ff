"""A cancel call that is refused because the job is over is taken for a cancelled job."""

from collections.abc import Mapping
from typing import Any

from harness.subject import Client, Host
from tests.correct_clients._plain import PlainClient, Record

SCENARIO = "cancel-of-a-finished-job"
CAUGHT_BY = "cancelled-only-if-confirmed"


class Broken(PlainClient):
    taken_for_cancelled = 409

    async def _cancel(self, record: Record, cancel: Mapping[str, Any]) -> None:
        record.cancel_at = None
        answer = await self._call(record, "DELETE", f"/v1/jobs/{record.job}")
        self._later(record, answer)
        if answer is not None and answer.status_code == self.taken_for_cancelled:
            self._rest(record, "cancelled")


def build(host: Host) -> Client:
    return Broken(host)
