"""A status read carries the job id and no credential."""

import httpx2

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from tests.broken_clients._parts import sending

SCENARIO = "happy-path"
CAUGHT_BY = "job-id-is-no-authorisation"


class Broken(httpx2.AsyncBaseTransport):
    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.method == "GET" and not request.url.path.endswith("/result"):
            headers = {name: value for name, value in request.headers.items() if name != "authorization"}
            request = httpx2.Request(request.method, request.url, headers=headers, extensions=request.extensions)
        return await self._inner.handle_async_request(request)


def build(host: Host) -> Client:
    return build_with(sending(host, Broken(host.transport)))
