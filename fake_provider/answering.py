"""How an answer ends on a real socket: whole, in two parts, cut, reset, or in silence.

Most answers are ordinary. They are written as one piece at the very moment the engine has them, past aiohttp, which
saves more than half of what a request costs; everything else goes through a coroutine that holds the connection.
"""

import asyncio
import socket
import struct
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import Final

from aiohttp import web
from aiohttp.http import SERVER_SOFTWARE, HttpVersion11

from fake_provider.clock import Clock
from fake_provider.effects import Send
from fake_provider.engine import Passage
from fake_provider.facts import Fate
from fake_provider.wire import Answer

__all__ = ["MAX_SILENCE_S", "Desk"]

MAX_SILENCE_S: Final = 300.0
"""A lost answer keeps its connection this long; a client that waits longer has no time-out to test."""

_RESET_ON_CLOSE: Final = struct.pack("ii", 1, 0)  # SO_LINGER: on, 0 s. The kernel then sends RST instead of FIN
_AT_ONCE_BYTES: Final = 1 << 16
"""Larger answers are left to aiohttp, which waits for a slow reader."""

_WITHOUT_BODY: Final = frozenset({*range(100, 200), HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED})


class Desk:
    """What the engine hands the answer to one request to."""

    __slots__ = ("_begun", "_clock", "_is_plain", "_news", "_over", "_request", "_to_begin", "_to_send", "_written")

    def __init__(self, request: web.BaseRequest, clock: Clock) -> None:
        """Args:
        request: whose body was read.
        clock: the provider's, for the Date of the answer.
        """
        self._request = request
        self._clock = clock
        self._is_plain = _is_plain(request)
        self._written = False
        self._begun: web.StreamResponse | None = None
        self._to_begin: Answer | None = None
        self._to_send: Send | None = None
        self._over = False
        self._news: asyncio.Future[None] | None = None

    # -- the engine's side: see fake_provider.engine.Shell

    def begin(self, passage: Passage, answer: Answer) -> bool:  # noqa: ARG002
        self._is_plain = False
        self._to_begin = answer
        self._tell()
        return False

    def send(self, passage: Passage, send: Send) -> bool:  # noqa: ARG002
        if self._is_plain and send.fate is Fate.DELIVERED and send.answer is not None:
            self._written = _write_at_once(self._request.transport, send.answer, self._clock.now())
        if self._written:
            return True
        self._to_send = send
        self._tell()
        return False

    def ended(self, passage: Passage) -> None:  # noqa: ARG002
        self._over = True
        self._tell()

    def _tell(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    # -- the connection's side

    async def respond(self, passage: Passage) -> web.StreamResponse:
        """Bring the answer to the client, and return what aiohttp wants to have of it."""
        try:
            while True:
                await self._something_to_do()
                if self._to_begin is not None:
                    answer, self._to_begin = self._to_begin, None
                    self._begun = await _begin(self._request, answer, self._clock.now())
                    passage.sent()
                elif self._to_send is not None:
                    send = self._to_send
                    response = await self._end(send)
                    self._to_send = None
                    passage.sent()
                    return response or await _silence(self._request)
                else:
                    if passage.error is not None:
                        raise passage.error
                    return _WRITTEN if self._written else _hang_up(self._request)  # the client's host is dead
        except asyncio.CancelledError:
            self._abandon(passage)
            raise
        except ConnectionError:  # the client hung up between two looks at it
            self._abandon(passage)
            return _hang_up(self._request)

    def _abandon(self, passage: Passage) -> None:
        passage.abandon()
        if self._to_send is not None:
            self._to_send.fate = Fate.ABANDONED
            passage.sent()

    async def _something_to_do(self) -> None:
        if self._to_begin is None and self._to_send is None and not self._over:
            self._news = asyncio.get_running_loop().create_future()
            await self._news
            self._news = None

    async def _end(self, send: Send) -> web.StreamResponse | None:
        """Let the answer end in the manner that is asked for; None where that is silence."""
        request, answer, begun = self._request, send.answer, self._begun
        if send.fate is Fate.RESET:
            return _reset(request)
        if send.fate is Fate.LOST or answer is None:
            return None
        now = self._clock.now()
        if send.fate is Fate.CUT:
            return _hang_up(request, begun or await _begin(request, answer, now))
        if begun is not None:
            await begun.write_eof(answer.body[len(answer.body) // 2 :])
            return begun
        whole = web.Response(status=answer.status, body=answer.body, headers=_headers(answer, now))
        if len(request.headers.get("Content-Length", "")) and answer.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            whole.force_close()  # the rest of the body is still on its way
        await whole.prepare(request)
        await whole.write_eof()
        return whole


class _Written(web.StreamResponse):
    """Tells aiohttp that the answer is on its way already, and that the next request may come."""

    @property
    def keep_alive(self) -> bool:
        return True

    async def prepare(self, request: web.BaseRequest) -> None:
        """Write no head: it is written."""

    async def write_eof(self, data: bytes = b"") -> None:
        """Write no body: it is written."""


_WRITTEN: Final = _Written()


def _is_plain(request: web.BaseRequest) -> bool:
    """Whether a head and a body of known length answer it, and then the next request may come."""
    return (
        request.content.is_eof()  # of a body too large the rest is still to come
        and request.keep_alive
        and request.version == HttpVersion11
        and request.method != "HEAD"
    )


def _write_at_once(transport: asyncio.Transport | None, answer: Answer, now: float) -> bool:
    """Write a whole answer, if that needs no care and no waiting. Return whether it was written."""
    if len(answer.body) > _AT_ONCE_BYTES or answer.status in _WITHOUT_BODY:
        return False
    if transport is None or transport.is_closing() or transport.get_write_buffer_size():
        return False
    headers = _headers(answer, now)
    lines = "".join([f"{name}: {value}\r\n" for name, value in headers])
    if lines.count("\n") != len(headers) or lines.count("\r") != len(headers):
        return False  # aiohttp refuses a line break in a header
    head = f"{_status_line(answer.status)}{lines}Content-Length: {len(answer.body)}\r\n\r\n"
    transport.write(head.encode() + answer.body)
    return True


@lru_cache(maxsize=64)
def _status_line(status: int) -> str:
    phrases = {known.value: known.phrase for known in HTTPStatus}
    return f"HTTP/1.1 {status} {phrases.get(status, '')}\r\n"


def _headers(answer: Answer, now: float) -> list[tuple[str, str]]:
    """Return the answer's headers and those that every answer has."""
    server, date = _of_every_answer(int(now))
    return [*answer.headers, server, date] if answer.header("date") is None else [*answer.headers, server]


@lru_cache(maxsize=4)
def _of_every_answer(second: int) -> tuple[tuple[str, str], tuple[str, str]]:
    return ("Server", SERVER_SOFTWARE), ("Date", formatdate(second, usegmt=True))


async def _begin(request: web.BaseRequest, answer: Answer, now: float) -> web.StreamResponse:
    """Send the head of an answer and half of its body."""
    response = web.StreamResponse(status=answer.status)
    for name, value in _headers(answer, now):
        response.headers.add(name, value)
    response.content_length = len(answer.body)
    await response.prepare(request)
    await response.write(answer.body[: len(answer.body) // 2])
    return response


def _reset(request: web.BaseRequest) -> web.StreamResponse:
    """End the connection with a TCP reset."""
    transport = request.transport
    if transport is not None:
        held: socket.socket | None = transport.get_extra_info("socket")
        if held is not None:
            held.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        transport.abort()
    return web.Response()  # aiohttp finds that nobody is there to have it


def _hang_up(request: web.BaseRequest, response: web.StreamResponse | None = None) -> web.StreamResponse:
    """Send what was written and end the connection."""
    if request.transport is not None:
        request.transport.close()
    return response or web.Response()


async def _silence(request: web.BaseRequest) -> web.StreamResponse:
    """Say nothing until the client hangs up, which cancels this."""
    await asyncio.sleep(MAX_SILENCE_S)
    return _hang_up(request)
