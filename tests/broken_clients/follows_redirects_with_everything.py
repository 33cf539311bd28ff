"""Redirects are followed wherever they lead, with all the headers of the first request."""

import httpx2

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from tests.broken_clients._parts import sending

SCENARIO = "redirect-to-another-origin"
CAUGHT_BY = "credential-only-to-its-origin"


class Broken(httpx2.AsyncBaseTransport):
    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await self._inner.handle_async_request(request)
        if not response.has_redirect_location:
            return response
        url = request.url.join(response.headers["location"])
        headers = {**request.headers, "host": url.netloc.decode()}
        again = httpx2.Request(request.method, url, headers=headers, extensions=request.extensions)
        return await self._inner.handle_async_request(again)


def build(host: Host) -> Client:
    return build_with(sending(host, Broken(host.transport)))
