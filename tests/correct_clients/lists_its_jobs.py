"""Where jobs can be looked up by their reference, that is how they are observed; the key goes into a header of its own,
too, and numbers are written as fractions.
"""

from collections.abc import Mapping
from typing import Any

import httpx2
import msgspec

from harness.subject import Client, Host
from tests.correct_clients._plain import PlainClient, Record, _json


class Listing(PlainClient):
    async def submit(self, operation: str, request: Mapping[str, Any]) -> None:
        await super().submit(operation, _fractions(request))

    async def _call(
        self, record: Record, method: str, path: str, *, body: bytes | None = None, **headers: str
    ) -> httpx2.Response | None:
        headers = {**headers, "x_api_key": self.host.authorization.rpartition(" ")[2]}
        offered = self.contract["lookup"]["by"] == "by_client_reference" and not self.contract["lookup"]["lag_s"]
        if not offered or method != "GET" or path != f"/v1/jobs/{record.job}" or record.state == "result_collecting":
            return await super()._call(record, method, path, body=body, **headers)
        reference = msgspec.json.decode(record.body)["client_reference"]
        answer = await super()._call(record, "GET", f"/v1/jobs?client_reference={reference}", body=body, **headers)
        if answer is None or answer.status_code != 200:
            return answer
        # The first is any other job than this one: that is what must be looked into.
        jobs = sorted(_json(answer).get("jobs", ()), key=lambda job: bool(job["id"] == record.job))
        if not jobs:
            return None
        asked = {name: answer.headers[name] for name in ("date", "retry-after") if name in answer.headers}
        return httpx2.Response(200, json=jobs[0], headers=asked)


def _fractions(value: Any) -> Any:
    """As a language has it that knows no whole numbers."""
    if isinstance(value, Mapping):
        return {name: _fractions(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_fractions(each) for each in value]
    return float(value) if type(value) is int else value


def build(host: Host) -> Client:
    return Listing(host)
