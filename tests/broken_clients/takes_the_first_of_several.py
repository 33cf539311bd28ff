"""Of several jobs that a look-up finds the first is taken."""

from collections.abc import Mapping
from typing import Any

from harness.subject import Client, Host
from tests.correct_clients._plain import PlainClient, Record, _json

SCENARIO = "lookup-finds-two-jobs"
CAUGHT_BY = "conflicting-job-ids-need-a-human"
ALSO_CAUGHT_BY = ("conflicting-job-ids-stop-everything",)


class Broken(PlainClient):
    async def _look_up(self, record: Record, lookup: Mapping[str, Any]) -> None:
        answer = await self._call(record, "GET", f"/v1/jobs?client_reference={record.operation}")
        listed = _json(answer).get("jobs") if answer is not None else None
        if listed:
            self._accept(record, listed[0], answer)
        else:
            self._later(record, answer)


def build(host: Host) -> Client:
    return Broken(host)
