"""A cancel call that was not answered is sent again, whatever the contract says of second ones."""

from collections.abc import Mapping
from typing import Any

from harness.subject import Client, Host
from tests.correct_clients._plain import PlainClient, Record

SCENARIO = "lost-cancel-answer-no-second-call"
CAUGHT_BY = "one-cancel-per-intent"


class Broken(PlainClient):
    async def _cancel(self, record: Record, cancel: Mapping[str, Any]) -> None:
        await super()._cancel(record, {**cancel, "repeatable": True})


def build(host: Host) -> Client:
    return Broken(host)
