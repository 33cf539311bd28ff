"""One exchange with the provider in the process that calls it, in no HTTP library's terms: what ``transport`` and
``respx_router`` have in common.
"""

import asyncio
from collections.abc import Iterable
from typing import NoReturn

import msgspec

from fake_provider.effects import Send
from fake_provider.engine import Engine, Passage
from fake_provider.facts import Fate
from fake_provider.wire import Answer, Request

__all__ = ["Caller", "Origin"]


class _Waiter:
    """Holds the answer of one exchange, and wakes the client if it has to wait for it."""

    __slots__ = ("answer_is_there", "sending")

    def __init__(self) -> None:
        self.sending: Send | None = None
        self.answer_is_there: asyncio.Future[None] | None = None

    def begin(self, passage: Passage, answer: Answer) -> bool:  # noqa: ARG002
        return True  # an HTTP library is handed an answer as a whole

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


class Origin(msgspec.Struct, frozen=True):
    """Where the provider is to be found; every other place is elsewhere."""

    root: str  # scheme and authority
    prefix: str  # path, no slash at the end

    @classmethod
    def of(cls, base_url: str) -> "Origin":
        scheme, _, rest = base_url.partition("://")
        authority, slash, path = rest.partition("/")
        return cls(f"{scheme}://{authority}", f"{slash}{path}".rstrip("/"))

    def request(
        self, method: str, origin: str, raw_path: bytes, headers: Iterable[tuple[bytes, bytes]], body: bytes
    ) -> Request:
        """Return a client's request as it comes in.

        Args:
            origin: scheme and authority that it goes to.
            raw_path: with the query.
        """
        joined: dict[str, str] = {}
        for raw_name, raw_value in headers:
            name, value = raw_name.decode("ascii").lower(), raw_value.decode("latin-1")
            joined[name] = f"{joined[name]}, {value}" if name in joined else value
        path, _, query = raw_path.decode("ascii").partition("?")
        ours = origin == self.root and path.startswith(self.prefix)
        return Request(
            method=method,
            path=path[len(self.prefix) :] if ours else path,
            query=query,
            headers=joined,
            body=body,
            base_url=origin + self.prefix if ours else origin,
            elsewhere=not ours,
        )


class Caller:
    """One worker's way to the provider."""

    def __init__(self, engine: Engine, worker: str) -> None:
        self._engine = engine
        self._worker = worker

    async def call(self, request: Request, read_s: float | None) -> tuple[Answer | None, Fate]:
        """Take one request through an exchange, and wait as long as a network would let the client wait.

        Args:
            read_s: the client's own limit for an answer, None for none.

        Returns:
            the answer and what became of it. ``LOST``: the client's time is up and nothing came. ``RESET``: the
            connection broke. ``CUT``: half of the answer arrived.
        """
        loop = self._engine.loop
        started = loop.time()
        waiter = _Waiter()
        passage = self._engine.begin(request, self._worker, waiter)
        if waiter.sending is None and not passage.is_over:
            waiter.answer_is_there = loop.create_future()
            try:
                done, _ = await asyncio.wait((waiter.answer_is_there,), timeout=read_s)
            except asyncio.CancelledError:
                passage.abandon()
                raise
            if not done:
                passage.abandon()
                return None, Fate.LOST
        if not self._engine.hosts.is_running(self._worker):
            await self._let_host_effects_act()
        if passage.error is not None:
            raise passage.error
        if waiter.sending is None:
            return await _for_ever()
        answer, fate = waiter.sending.answer, waiter.sending.fate
        if fate is Fate.RESET:
            return None, fate
        if answer is None or fate is Fate.LOST:
            if read_s is None:
                return await _for_ever()
            await asyncio.sleep(max(0.0, started + read_s - loop.time()))
            return None, Fate.LOST
        return answer, fate

    async def _let_host_effects_act(self) -> None:
        """Give a frozen or dead worker's loop the chance not to run it any further."""
        await asyncio.sleep(0)
        if not self._engine.hosts.is_running(self._worker):
            await _for_ever()


async def _for_ever() -> NoReturn:
    """Wait for what never comes."""
    await asyncio.get_running_loop().create_future()
    raise AssertionError("nobody resolves this future")
