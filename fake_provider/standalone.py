"""The fake provider by itself: sessions behind one port, the control API behind another."""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Final, Self

from fake_provider.control import Control
from fake_provider.engine import Attempt, Deliver
from fake_provider.server import Place, Server, WebhookPost
from fake_provider.sessions import CLIENT, DEFAULT_SESSION, Sessions, SessionTerms, Watcher

__all__ = ["PREFIX", "SESSION_HEADER", "Standalone"]

PREFIX: Final = "/s/"
"""A base path ``/s/NAME`` says which session a request is for …"""

SESSION_HEADER: Final = "Jobsworth-Session"
"""… and so does this header; a request with neither is for the default session."""


class Standalone:
    """Serve until left::

    async with Standalone(SessionTerms()) as served:
        print(served.base_url, served.control_url)
    """

    def __init__(
        self, terms: SessionTerms, *, port: int = 0, control_port: int = 0, watcher: Watcher | None = None
    ) -> None:
        """Args:
        terms: of the default session.
        port: for clients; 0 for any that is free.
        control_port: for the control API; 0 for any that is free.
        watcher: told of each session as it begins and ends.
        """
        self._ports = port, control_port
        self._stack = AsyncExitStack()
        self._post = WebhookPost()
        self.sessions = Sessions(default=terms, base_url=self._url_of, deliver=self._deliver_to, watcher=watcher)
        self.base_url = ""
        self.control_url = ""

    async def __aenter__(self) -> Self:
        """Open both ports. ``OSError`` if one is taken, ``HostOutOfReach`` if a fault needs the client's host."""
        port, control_port = self._ports
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._post)
            stack.push_async_callback(self.sessions.close)
            server = Server()
            stack.push_async_callback(server.close)
            self.base_url = await server.open_router(self._place, port)
            self.sessions.start()
            control = Control(self.sessions)
            stack.push_async_callback(control.close)
            self.control_url = await control.open_port(control_port)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self._stack.aclose()

    def _url_of(self, session: str) -> str:
        return self.base_url if session == DEFAULT_SESSION else f"{self.base_url}{PREFIX}{session}"

    def _deliver_to(self, url: str) -> Deliver:
        async def deliver(attempt: Attempt) -> int | None:
            attempt.worker = CLIENT
            return await self._post.post(url, attempt)

        return deliver

    def _place(self, path: str, headers: Mapping[str, str]) -> Place:
        """Find a request's session by its path, or else by its header. ``NoSuchSession`` if there is none."""
        if path.startswith(PREFIX):
            name = path[len(PREFIX) :].partition("/")[0]
            return Place(self.sessions.get(name).engine, CLIENT, f"{PREFIX}{name}")
        return Place(self.sessions.get(headers.get(SESSION_HEADER, DEFAULT_SESSION)).engine, CLIENT)
