"""The provider in process, under httpx2: no socket, and the client's loop may run on virtual time."""

import asyncio
from collections.abc import AsyncIterator
from typing import NoReturn

import httpx2

from fake_provider.effects import Send
from fake_provider.engine import Engine, Passage
from fake_provider.facts import Fate
from fake_provider.wire import Answer, Request

__all__ = ["InProcessTransport"]


class _Waiter:
    """Holds the answer of one exchange, and wakes the client if it has to wait for it."""

    __slots__ = ("answer_is_there", "sending")

    def __init__(self) -> None:
        self.sending: Send | None = None
        self.answer_is_there: asyncio.Future[None] | None = None

    def begin(self, passage: Passage, answer: Answer) -> bool:  # noqa: ARG002
        return True  # httpx2 hands out an answer as a whole

    def send(self, passage: Passage, send: Send) -> bool:  # noqa: ARG002
        self.sending = send
        self._wake()
        return True

    def ended(self, passage: Passage) -> None:
        if passage.error is not None:
            self._wake()

    def _wake(self) -> None:
        if self.answer_is_there is not None and not self.answer_is_there.done():
            self.answer_is_there.set_result(None)


class InProcessTransport(httpx2.AsyncBaseTransport):
    """Sends one worker's requests to an :class:`Engine`; time-outs and broken connections are as on a network."""

    def __init__(self, engine: Engine, worker: str) -> None:
        self._engine = engine
        self._worker = worker
        base = httpx2.URL(engine.boundary.base_url)
        self._origin = f"{base.scheme}://{base.netloc.decode('ascii')}"
        self._prefix = base.path.rstrip("/")

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        body = await request.aread()
        read_s: float | None = request.extensions.get("timeout", {}).get("read")
        loop = self._engine.loop
        started = loop.time()
        waiter = _Waiter()
        passage = self._engine.begin(self._as_request(request, body), self._worker, waiter)
        if waiter.sending is None and not passage.is_over:
            waiter.answer_is_there = loop.create_future()
            try:
                done, _ = await asyncio.wait((waiter.answer_is_there,), timeout=read_s)
            except asyncio.CancelledError:
                passage.abandon()
                raise
            if not done:
                passage.abandon()
                raise httpx2.ReadTimeout("no answer within the read time-out", request=request)
        await self._let_host_effects_act()
        if passage.error is not None:
            raise passage.error
        if waiter.sending is None:
            return await _for_ever()
        answer, fate = waiter.sending.answer, waiter.sending.fate
        if fate is Fate.RESET:
            raise httpx2.ReadError("connection reset by peer", request=request)
        if answer is None or fate is Fate.LOST:
            if read_s is None:
                return await _for_ever()
            await asyncio.sleep(max(0.0, started + read_s - loop.time()))
            raise httpx2.ReadTimeout("no answer within the read time-out", request=request)
        return _response(answer, request, cut=fate is Fate.CUT)

    async def _let_host_effects_act(self) -> None:
        """Give a frozen or dead worker's loop the chance not to run it any further."""
        if not self._engine.hosts.is_running(self._worker):
            await asyncio.sleep(0)
            if not self._engine.hosts.is_running(self._worker):
                await _for_ever()

    def _as_request(self, request: httpx2.Request, body: bytes) -> Request:
        headers: dict[str, str] = {}
        for raw_name, raw_value in request.headers.raw:
            name, value = raw_name.decode("ascii").lower(), raw_value.decode("latin-1")
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        url = request.url
        path, _, query = url.raw_path.decode("ascii").partition("?")
        origin = f"{url.scheme}://{url.netloc.decode('ascii')}"
        ours = origin == self._origin and path.startswith(self._prefix)
        return Request(
            method=request.method,
            path=path[len(self._prefix) :] if ours else path,
            query=query,
            headers=headers,
            body=body,
            base_url=origin + self._prefix if ours else origin,
            elsewhere=not ours,
        )


async def _for_ever() -> NoReturn:
    """Wait for what never comes."""
    await asyncio.get_running_loop().create_future()
    raise AssertionError("nobody resolves this future")


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
