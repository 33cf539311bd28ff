"""The provider for clients in process that cannot be handed a transport: respx takes their requests from under them.

For clients on httpx (``using="httpcore"``) and on httpx2 (``using="httpcore2"``), synchronous and asynchronous. Their
own pools, time-outs and retries are at work; only what would go to a socket goes to the provider instead. Needs the
extra ``patched``.
"""

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from types import ModuleType
from typing import Any, Final, Literal

import httpcore
import httpcore2
import httpx
import pytest_httpx2  # noqa: F401  importing it is what teaches respx the mocker "httpcore2"
import respx

from fake_provider.engine import Engine
from fake_provider.facts import Fate
from fake_provider.in_process import Caller, Origin
from fake_provider.wire import Answer, Request

__all__ = ["Answering", "Library", "ProviderRouter", "Wait"]

Library = Literal["httpcore", "httpcore2"]
"""What carries a client's requests: httpcore under httpx, httpcore2 under httpx2."""

Answering = Coroutine[Any, Any, tuple[Answer | None, Fate]]
Wait = Callable[[Answering], tuple[Answer | None, Fate]]
"""How a synchronous client waits: brings one exchange to its end and returns what came of it."""

_ERRORS: Final[dict[str, ModuleType]] = {"httpcore": httpcore, "httpcore2": httpcore2}


class ProviderRouter(respx.MockRouter):
    """A respx router behind which there is a whole provider. A context manager: inside it, *every* request made through
    that library goes there, and one to another origin is answered as another origin would (and is on record as such).
    """

    def __init__(
        self, engine: Engine, worker: str = "w1", *, using: Library = "httpcore2", wait: Wait | None = None
    ) -> None:
        """Args:
        worker: who calls, as the history will have it.
        wait: how synchronous clients wait, such as ``loop.run_until_complete`` of a loop on which the engine was
            started and that nobody runs; without it they are refused.
        """
        super().__init__(assert_all_called=False, using=using)
        self._caller = Caller(engine, worker)
        self._origin = Origin.of(engine.boundary.base_url)
        self._errors = _ERRORS[using]
        self._wait = wait

    def handler(self, request: httpx.Request) -> httpx.Response:
        """Answer a synchronous client."""
        if self._wait is None:
            raise RuntimeError("a synchronous client needs a router that was told how such clients wait (wait=…)")
        return self._ended(*self._wait(self._called(request)))

    async def async_handler(self, request: httpx.Request) -> httpx.Response:
        """Answer an asynchronous client."""
        return self._ended(*await self._called(request))

    def _called(self, request: httpx.Request) -> Answering:
        read_s: float | None = request.extensions.get("timeout", {}).get("read")
        return self._caller.call(self._as_request(request), read_s)

    def _as_request(self, request: httpx.Request) -> Request:
        url = request.url
        origin = f"{url.scheme}://{url.netloc.decode('ascii')}"
        return self._origin.request(request.method, origin, url.raw_path, request.headers.raw, request.content)

    def _ended(self, answer: Answer | None, fate: Fate) -> httpx.Response:
        """Return what came, or raise what the client's own library would."""
        if fate is Fate.RESET:
            raise self._errors.ReadError("connection reset by peer")
        if answer is None:
            raise self._errors.ReadTimeout("no answer within the read time-out")
        if fate is not Fate.CUT:
            return httpx.Response(answer.status, headers=answer.headers, content=answer.body)
        headers = (*answer.headers, ("Content-Length", str(len(answer.body))))
        return httpx.Response(answer.status, headers=headers, stream=_Cut(answer.body, self._errors))


class _Cut(httpx.SyncByteStream, httpx.AsyncByteStream):
    """Half of a body, and then the end of the connection."""

    def __init__(self, body: bytes, errors: ModuleType) -> None:
        self._half = body[: len(body) // 2]
        self._error = errors.RemoteProtocolError(
            "peer closed connection without sending complete message body "
            f"(received {len(self._half)} bytes, expected {len(body)})"
        )

    def __iter__(self) -> Iterator[bytes]:
        yield self._half
        raise self._error

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._half
        raise self._error
