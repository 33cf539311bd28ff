"""The provider on real sockets, with aiohttp: one loopback port for each worker, and webhooks by real POST requests.

Faults are physical here: a reset is a TCP reset, a cut answer announces its whole length and ends early, a lost answer
is silence until the client hangs up.
"""

import logging
import re
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Final, Self

import msgspec
from aiohttp import ClientError, ClientSession, ClientTimeout, web
from aiohttp.http import HttpProcessingError

from fake_provider.answering import Desk
from fake_provider.engine import Engine
from fake_provider.webhooks import Attempt
from fake_provider.wire import MAX_BODY_BYTES, Request

__all__ = ["BACKLOG", "CLOSING_S", "LOGGER", "LOOPBACK", "Place", "Router", "Server", "WebhookPost", "problem"]

LOOPBACK: Final = "127.0.0.1"
"""The only interface it listens on: a fake provider is nobody else's business."""

BACKLOG: Final = 1_024
"""Connections that may wait to be accepted: past that the kernel lets a client wait for a second and more."""

CLOSING_S: Final = 0.05
"""A request that is under way when a port closes has so long to end; then its connection is cut. (aiohttp takes 0 for
ever.)"""

_PLAIN_HOST: Final = re.compile(r"[A-Za-z0-9.-]+(?::[0-9]{1,5})?|\[[0-9a-fA-F:.]+\](?::[0-9]{1,5})?")


def _is_worth_a_word(record: logging.LogRecord) -> bool:
    """What is no HTTP request was refused with 400 and the reason; a traceback of the parser says nothing more."""
    return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))


LOGGER: Final = logging.getLogger("fake_provider.server")
"""Where bugs of ours are told of; nothing else is."""
LOGGER.addFilter(_is_worth_a_word)


class Place(msgspec.Struct, frozen=True):
    """Whose request it is: the engine it goes to, the worker it comes from, and the part of the path that said so."""

    engine: Engine
    worker: str
    prefix: str = ""


Router = Callable[[str, Mapping[str, str]], Place]
"""Finds the place of a request by its path and headers (names in any case); ``LookupError`` if it has none."""


class Server:
    """Engines behind loopback ports."""

    def __init__(self, engine: Engine | None = None) -> None:
        """Args:
        engine: the one that workers with a port of their own call.
        """
        self._engine = engine
        self._runners: list[web.ServerRunner] = []

    async def open_port(self, worker: str, port: int = 0) -> str:
        """Listen for one worker, and return the base URL to give it.

        Args:
            port: a port of one's own choice; 0 for any that is free.

        Raises:
            OSError: if the port is taken.
        """
        if self._engine is None:
            raise ValueError("a port for a worker needs an engine to call")
        place = Place(self._engine, worker)
        return await self.open_router(lambda path, headers: place, port)  # noqa: ARG005  one place for all

    async def open_router(self, router: Router, port: int = 0) -> str:
        """Listen for whoever has a place by ``router``, and return the base URL. ``OSError`` if the port is taken."""
        elsewhere_url = await self._listen(_Door(router, elsewhere=True), 0)
        return await self._listen(_Door(router, elsewhere_url=elsewhere_url), port)

    async def _listen(self, door: "_Door", port: int) -> str:
        # Handlers are cancelled when their client hangs up: that is how an abandoned exchange is noticed.
        server = web.Server(door.handle, handler_cancellation=True, access_log=None, logger=LOGGER)
        runner = web.ServerRunner(server, shutdown_timeout=CLOSING_S)
        await runner.setup()
        self._runners.append(runner)
        await web.TCPSite(runner, LOOPBACK, port, backlog=BACKLOG).start()
        bound = runner.addresses[0][1]
        door.authority = f"{LOOPBACK}:{bound}"
        return f"http://{door.authority}"

    async def close(self) -> None:
        """Close all ports and connections. The engine goes on."""
        for runner in self._runners:
            await runner.cleanup()
        self._runners.clear()


class _Door:
    """One port."""

    def __init__(self, router: Router, *, elsewhere: bool = False, elsewhere_url: str = "") -> None:
        self._router = router
        self._elsewhere = elsewhere
        self._elsewhere_url = elsewhere_url
        self.authority = ""

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Take one request through the engine, and end its answer as the engine says."""
        body = await _read_limited(request) if request.body_exists else b""
        path, _, query = request.raw_path.partition("?")
        if "://" in path:  # absolute form, as through a proxy
            path = "/" + path.split("://", 1)[1].partition("/")[2]
        try:
            place = self._router(path, request.headers)
        except LookupError as error:
            return problem(HTTPStatus.NOT_FOUND, str(error.args[0]))
        desk = Desk(request, place.engine.clock)
        passage = place.engine.begin(self._as_request(request, place.prefix, path, query, body), place.worker, desk)
        return await desk.respond(passage)

    def _as_request(self, request: web.BaseRequest, prefix: str, path: str, query: str, body: bytes) -> Request:
        headers = {name.lower(): value for name, value in request.headers.items()}
        if len(headers) != len(request.headers):
            headers = _joined(request.headers)
        host = headers.get("host", "")
        authority = host if host == self.authority or _PLAIN_HOST.fullmatch(host) else self.authority
        return Request(
            method=request.method,
            path=path[len(prefix) :],
            query=query,
            headers=headers,
            body=body,
            base_url=f"http://{authority}{prefix}",
            elsewhere=self._elsewhere,
            elsewhere_url=f"{self._elsewhere_url}{prefix}",
        )


def _joined(headers: Mapping[str, str]) -> dict[str, str]:
    """Return headers of which some come more than once, the values of each as one list."""
    joined: dict[str, str] = {}
    for raw_name, value in headers.items():
        name = raw_name.lower()
        joined[name] = f"{joined[name]}, {value}" if name in joined else value
    return joined


def problem(status: HTTPStatus, detail: str) -> web.Response:
    """Return an error in the form of RFC 9457."""
    body = {"type": "about:blank", "title": status.phrase, "status": status.value, "detail": detail}
    return web.Response(status=status, body=msgspec.json.encode(body), content_type="application/problem+json")


async def _read_limited(request: web.BaseRequest) -> bytes:
    """Read a body, and no more of it than shows that it is too large."""
    if request.content.is_eof():  # it came with the head, and is no larger than what a socket is read for at once
        return request.content.read_nowait()
    read = bytearray()
    async for chunk in request.content.iter_chunked(1 << 16):
        read += chunk
        if len(read) > MAX_BODY_BYTES:
            break
    return bytes(read)


class WebhookPost:
    """Delivers webhooks by POST, as ``Engine``'s ``deliver``. Redirects are not followed: only 2xx is success."""

    def __init__(self, receiver: Callable[[], tuple[str | None, str] | None] = lambda: None) -> None:
        """Args:
        receiver: says to whom and where the next delivery goes (worker if known, URL), None if nobody takes any.
        """
        self._receiver = receiver
        self._session: ClientSession | None = None

    async def __aenter__(self) -> Self:
        # The engine has its own time-out around each delivery.
        self._session = ClientSession(timeout=ClientTimeout(total=None))
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def __call__(self, attempt: Attempt) -> int | None:
        receiver = self._receiver()
        if receiver is None:
            return None
        attempt.worker, url = receiver
        return await self.post(url, attempt)

    async def post(self, url: str, attempt: Attempt) -> int | None:
        """Post one delivery there; return the status, None if there was no answer."""
        if self._session is None:
            raise RuntimeError("WebhookPost delivers only inside its async with block")
        try:
            async with self._session.post(
                url, data=attempt.body, headers=attempt.headers, allow_redirects=False
            ) as answer:
                return answer.status
        except (ClientError, OSError):
            return None
