"""What broken clients are put together from: ways to leave out or bend one part of the reference client, and nothing
else.

Not a broken client itself. Each of those is a module with ``build(host)``, whose docstring says what is wrong,
``SCENARIO`` in which it shows, ``CAUGHT_BY``, the rule that must catch it, and ``ALSO_CAUGHT_BY``, rules that apply
as well.
"""

import dataclasses
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx2
import msgspec

from harness.subject import Claim, Client, Host, Note, Recorded, Recording
from harness.subjects.reference import ReferenceSubject
from reference_client.lifecycle import LocalState
from reference_client.operation import HistoryEntry
from reference_client.steps import Draft
from reference_client.stores.observed import ObservedStore
from reference_client.stores.protocol import Lease, OperationStore

SCENARIOS = Path(__file__).parent / "scenarios"


def story(name: str) -> str:
    """The path of a scenario that is kept beside these clients."""
    return str(SCENARIOS / f"{name}.yaml")


class _Silence:
    async def recording(self, entry: HistoryEntry) -> None:
        """Say nothing."""

    async def recorded(self, entry: HistoryEntry) -> None:
        """Say nothing."""

    async def lease(self, lease: Lease, what: str, lasts_s: float) -> None:
        """Say nothing."""


class Store(ObservedStore):
    """A store that hands everything on; a broken one overrides a method."""

    def __init__(self, inner: OperationStore) -> None:
        super().__init__(inner, _Silence())


class Subject:
    """A client that hands everything on to the reference client; a broken one overrides a method."""

    def __init__(self, host: Host, inner: ReferenceSubject) -> None:
        self.host = host
        self.inner = inner

    async def run(self) -> None:
        await self.inner.run()

    async def submit(self, operation: str, request: Mapping[str, Any]) -> None:
        await self.inner.submit(operation, request)

    async def cancel(self, operation: str, who: str, why: str) -> None:
        await self.inner.cancel(operation, who, why)

    async def reconcile(self, operation: str, who: str, why: str) -> None:
        await self.inner.reconcile(operation, who, why)

    async def decide(self, operation: str, who: str, why: str, state: str, job: str | None) -> None:
        await self.inner.decide(operation, who, why, state, job)

    async def report(self) -> Sequence[Claim]:
        return await self.inner.report()

    async def webhook(self, headers: Mapping[str, str], body: bytes) -> int:
        return await self.inner.webhook(headers, body)

    async def stop(self) -> None:
        await self.inner.stop()

    async def send(self, method: str, path: str, *, trace: str) -> httpx2.Response | None:
        """Make a call past the workflow, as code does that somebody put in later."""
        headers = {"authorization": self.host.authorization, "traceparent": f"00-{trace}-00f067aa0ba902b7-01"}
        async with httpx2.AsyncClient(transport=self.host.transport, base_url=self.host.base_url) as client:
            try:
                return await client.request(method, path, headers=headers)
            except httpx2.HTTPError:
                return None


class Claiming(Subject):
    """A client that says something else than it has on record."""

    def __init__(self, host: Host, inner: ReferenceSubject, says: Callable[[Claim], Claim | None]) -> None:
        super().__init__(host, inner)
        self._says = says

    async def report(self) -> Sequence[Claim]:
        return [said for claim in await self.inner.report() if (said := self._says(claim)) is not None]


def noting(host: Host, bend: Callable[[Recorded], Recorded | None]) -> Host:
    """A host on which history entries are recorded differently, or (None) not at all."""
    tell: Callable[[Note], Awaitable[None]] = host.note

    async def note(said: Note) -> None:
        if isinstance(said, Recording):
            return
        bent = bend(said) if isinstance(said, Recorded) else said
        if bent is not None:
            await tell(bent)

    return dataclasses.replace(host, note=note)


def sending(host: Host, transport: httpx2.AsyncBaseTransport) -> Host:
    """A host whose network goes through ``transport``."""
    return dataclasses.replace(host, transport=transport)


class Retrying(httpx2.AsyncBaseTransport):
    """A network that sends some requests again at once when they fail, as transports do that retry without back-off."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, method: str, ending: str, tries: int) -> None:
        self._inner = inner
        self._method = method
        self._ending = ending
        self._tries = tries

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        answer = await self._inner.handle_async_request(request)
        if request.method == self._method and request.url.path.endswith(self._ending):
            for _ in range(self._tries - 1):
                if answer.status_code < 500:
                    break
                answer = await self._inner.handle_async_request(request)
        return answer


def force(draft: Draft, after: LocalState, *, cause: str, reason: str) -> None:
    """Change the local state without asking the table of transitions."""
    before = draft.operation.state
    draft.operation = msgspec.structs.replace(draft.operation, state=after)
    draft._write("transition", before, cause, reason, None, {})


__all__ = ["Claiming", "Client", "Retrying", "Store", "Subject", "force", "noting", "sending", "story"]
