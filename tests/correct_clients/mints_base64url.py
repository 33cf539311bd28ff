"""Tokens are 16 random bytes in base64url, as ``secrets.token_urlsafe`` makes them, hyphens and all."""

import base64
from collections.abc import Mapping
from typing import Any

import msgspec

from harness.subject import Client, Host
from tests.correct_clients._plain import PlainClient


class Minting(PlainClient):
    async def submit(self, operation: str, request: Mapping[str, Any]) -> None:
        is_known = operation in self.records
        await super().submit(operation, request)
        if is_known:
            return
        record = self.records[operation]
        record.token = base64.urlsafe_b64encode(self.host.random.randbytes(16)).rstrip(b"=").decode()
        body = msgspec.json.decode(record.body)
        if "request_id" in body:
            record.body = msgspec.json.encode({**body, "request_id": record.token}, order="sorted")


def build(host: Host) -> Client:
    return Minting(host)
