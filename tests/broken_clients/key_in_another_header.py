"""Redirects are followed without the Authorization header, and with the same key in a header of its own."""

import httpx2

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from tests.broken_clients._parts import sending

SCENARIO = "result-at-another-origin"
CAUGHT_BY = "credential-in-its-header-alone"


class Broken(httpx2.AsyncBaseTransport):
    def __init__(self, inner: httpx2.AsyncBaseTransport, authorization: str) -> None:
        self._inner = inner
        self._key = authorization.rpartition(" ")[2]

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        answer = await self._inner.handle_async_request(request)
        if answer.status_code in {302, 307}:
            kept = {name: request.headers[name] for name in ("accept", "traceparent")}
            target = request.url.join(answer.headers["location"])
            request = httpx2.Request(
                request.method, target, headers={**kept, "x-api-key": self._key}, extensions=request.extensions
            )
            answer = await self._inner.handle_async_request(request)
        return answer


def build(host: Host) -> Client:
    return build_with(sending(host, Broken(host.transport, host.authorization)))
