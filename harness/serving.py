"""The fake provider by itself: ``jobsworth serve``. For trying a client by hand; nothing is judged.

What happens is told as it happens. There is no host to kill or stop here, so a scenario that needs one is refused.
"""

import asyncio
import secrets
import signal
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from fake_provider.boundary import Boundary
from fake_provider.clock import SystemClock
from fake_provider.contract import Contract
from fake_provider.engine import Engine
from fake_provider.facts import Fact
from fake_provider.faults import Fault
from fake_provider.server import LOOPBACK, Server, WebhookPost
from fake_provider.work import Work
from harness.report.words import describe

__all__ = ["CannotServeError", "Played", "serve"]

_CLIENT: Final = "client"
"""What the one client is called that is known here: whoever calls."""

_HOST_FAULTS: Final = frozenset({"kill", "stop", "write_refused"})


class CannotServeError(ValueError):
    """A scenario that the provider by itself cannot play. The author's mistake."""


class _NoHost:
    """The client's machine, which is out of reach. No fault asks for it: see :func:`serve`."""

    def kill(self, worker: str) -> None:
        raise NotImplementedError(f"{worker} cannot be killed from here")

    def stop(self, worker: str, for_s: float | None) -> None:
        raise NotImplementedError(f"{worker} cannot be stopped for {for_s} s from here")

    def is_running(self, worker: str) -> bool:  # noqa: ARG002  whoever calls, runs
        return True


@dataclass(frozen=True, kw_only=True)
class Played:
    """What the provider is to be. A scenario's steps are not played, for the client is somebody else's."""

    contract: Contract
    work: Mapping[str, Work]
    faults: Sequence[Fault]
    seed: int
    dialect: str


def serve(played: Played, *, port: int, webhook_url: str | None, say: Callable[[str], object]) -> None:
    """Serve until SIGINT or SIGTERM, then close every connection and return.

    Args:
        played: what to serve.
        port: on the loopback interface; 0 for any that is free.
        webhook_url: where webhooks go; None: nowhere.
        say: told each line; the first holds the base URL.

    Raises:
        CannotServeError: a fault strikes at the client's host.
        OSError: the port is taken.
    """
    for number, fault in enumerate(played.faults):
        if fault.kind in _HOST_FAULTS:
            raise CannotServeError(
                f"faults[{number}]: {fault.kind} strikes at the client's host, which is out of reach "
                "here; jobsworth replay has it"
            )
    asyncio.run(_serve(played, port, webhook_url, say))


async def _serve(played: Played, port: int, webhook_url: str | None, say: Callable[[str], object]) -> None:
    secret = f"whsec_{b64encode(secrets.token_bytes(24)).decode()}"
    boundary = Boundary(
        played.contract,
        dialect=played.dialect,
        base_url=f"http://{LOOPBACK}:{port}",
        random=Random(played.seed),
        record=lambda fact: say(_told(fact)),
        work=played.work,
        faults=played.faults,
        webhook_secrets=[secret],
    )
    async with WebhookPost(lambda: (_CLIENT, webhook_url) if webhook_url else None) as deliver:
        engine = Engine(boundary, SystemClock(), hosts=_NoHost(), deliver=deliver)
        server = Server(engine)
        try:
            boundary.base_url = await server.open_port(_CLIENT, port)
            engine.start()
            terms = f"contract {played.contract.name}, {len(played.faults)} faults"
            say(f"{boundary.base_url} speaks {played.dialect}, {terms}")
            if webhook_url is not None:
                say(f"webhooks go to {webhook_url}, signed with {secret}")
            await _told_to_stop()
        finally:
            await server.close()
            await engine.close()


async def _told_to_stop() -> None:
    """Wait for SIGINT or SIGTERM."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    try:
        await stop.wait()
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


def _told(fact: Fact) -> str:
    sentence = describe(fact)
    return f"{sentence.actor:<9} {sentence.text}"
