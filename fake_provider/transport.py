"""The provider in process, under httpx2: no socket, and the client's loop may run on virtual time."""

from collections.abc import AsyncIterator

import httpx2

from fake_provider.engine import Engine
from fake_provider.facts import Fate
from fake_provider.in_process import Caller, Origin
from fake_provider.wire import Answer

__all__ = ["InProcessTransport"]


class InProcessTransport(httpx2.AsyncBaseTransport):
    """Sends one worker's requests to an :class:`Engine`; time-outs and broken connections are as on a network."""

    def __init__(self, engine: Engine, worker: str) -> None:
        self._caller = Caller(engine, worker)
        self._origin = Origin.of(engine.boundary.base_url)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if not isinstance(request, httpx2.Request):
            raise TypeError(
                f"this transport is for httpx2.AsyncClient; it was given a request of {type(request).__module__}"
            )
        body = await request.aread()
        url = request.url
        origin = f"{url.scheme}://{url.netloc.decode('ascii')}"
        read_s: float | None = request.extensions.get("timeout", {}).get("read")
        received = self._origin.request(request.method, origin, url.raw_path, request.headers.raw, body)
        answer, fate = await self._caller.call(received, read_s)
        if fate is Fate.RESET:
            raise httpx2.ReadError("connection reset by peer", request=request)
        if answer is None:
            raise httpx2.ReadTimeout("no answer within the read time-out", request=request)
        return _response(answer, request, cut=fate is Fate.CUT)


class _CutStream(httpx2.AsyncByteStream):
    """Half of a body, and then the end of the connection."""

    def __init__(self, body: bytes, request: httpx2.Request) -> None:
        self._body = body
        self._request = request

    async def __aiter__(self) -> AsyncIterator[bytes]:
        half = self._body[: len(self._body) // 2]
        yield half
        raise httpx2.RemoteProtocolError(
            "peer closed connection without sending complete message body "
            f"(received {len(half)} bytes, expected {len(self._body)})",
            request=self._request,
        )


def _response(answer: Answer, request: httpx2.Request, *, cut: bool) -> httpx2.Response:
    if not cut:
        return httpx2.Response(answer.status, headers=answer.headers, content=answer.body, request=request)
    headers = (*answer.headers, ("Content-Length", str(len(answer.body))))
    return httpx2.Response(answer.status, headers=headers, stream=_CutStream(answer.body, request), request=request)
