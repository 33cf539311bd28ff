"""The webhook receiver on a socket. The only module that touches aiohttp."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Self

from aiohttp import web

from reference_client.webhooks import BODY_LIMIT_BYTES

__all__ = ["PATH", "WebhookServer"]

_LOG: Final = logging.getLogger(__name__)

PATH: Final = "/webhooks"

_SHUTDOWN_S: Final = 2.0
"""An intake is one transaction; whoever is still sending after this long is not going to finish."""


class WebhookServer:
    """Listens for deliveries at :data:`PATH` and hands each to ``take`` (headers, body) for the status to answer with.

    An async context manager.

    Args:
        host: interface to listen on; a reverse proxy with TLS belongs in front of anything but the loopback.
        port: 0 for any that is free; see :attr:`url`.
    """

    def __init__(
        self, take: Callable[[Mapping[str, str], bytes], Awaitable[int]], *, host: str = "127.0.0.1", port: int = 0
    ) -> None:
        self._take = take
        self._host = host
        self._port = port
        application = web.Application(client_max_size=BODY_LIMIT_BYTES)
        application.router.add_post(PATH, self._receive)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=_SHUTDOWN_S)

    @property
    def url(self) -> str:
        """Where the provider is to send to; known once the server listens."""
        host, port = self._runner.addresses[0][:2]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}{PATH}"

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        await web.TCPSite(self._runner, self._host, self._port).start()
        _LOG.info("listening for webhooks at %s", self.url)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _receive(self, request: web.Request) -> web.Response:
        try:
            body = await request.read()
        except web.HTTPRequestEntityTooLarge:
            return web.Response(status=413)
        return web.Response(status=await self._take(request.headers, body))
