"""Deadlines are counted from the time at which the provider says that it created the job."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import httpx2

from harness.subject import Client, Host
from tests.correct_clients._plain import PlainClient, Record

SCENARIO = "created-by-a-wrong-clock"
CAUGHT_BY = "no-poll-after-result-deadline"


class Broken(PlainClient):
    def _accept(self, record: Record, job: Mapping[str, Any], answer: httpx2.Response | None) -> None:
        super()._accept(record, job, answer)
        record.created_at = datetime.fromisoformat(job["created_at"]).timestamp()


def build(host: Host) -> Client:
    return Broken(host)
