"""The credential goes into the URL as well, since some proxy once dropped the header."""

import httpx2

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from tests.broken_clients._parts import sending

SCENARIO = "happy-path"
CAUGHT_BY = "credential-in-its-header-alone"


class Broken(httpx2.AsyncBaseTransport):
    def __init__(self, inner: httpx2.AsyncBaseTransport, authorization: str) -> None:
        self._inner = inner
        self._key = authorization.rpartition(" ")[2]

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.method == "GET":
            url = request.url.copy_add_param("access_token", self._key)
            request = httpx2.Request("GET", url, headers=request.headers, extensions=request.extensions)
        return await self._inner.handle_async_request(request)


def build(host: Host) -> Client:
    return build_with(sending(host, Broken(host.transport, host.authorization)))
