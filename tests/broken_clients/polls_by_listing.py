"""The job is observed by listing the operation's jobs, four times a second."""

from typing import Any

import httpx2
import msgspec

from harness.subject import Client, Host
from tests.correct_clients._plain import PlainClient, Record

SCENARIO = "long-job-without-retry-after"
CAUGHT_BY = "backs-off"


class Broken(PlainClient):
    async def _call(self, record: Record, method: str, path: str, **more: Any) -> httpx2.Response | None:
        if method != "GET" or path != f"/v1/jobs/{record.job}":
            return await super()._call(record, method, path, **more)
        answer = await super()._call(record, method, f"/v1/jobs?client_reference={record.operation}", **more)
        if answer is None or answer.status_code != 200:
            return answer
        (job,) = msgspec.json.decode(answer.content)["jobs"]
        return httpx2.Response(200, json=job)

    def _later(self, record: Record, answer: httpx2.Response | None) -> None:
        record.due_at = self.now() + 0.25


def build(host: Host) -> Client:
    return Broken(host)
