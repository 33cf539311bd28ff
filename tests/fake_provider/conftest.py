"""A provider in virtual time, with hosts that can be killed and a receiver of webhooks: what most tests here need."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Any, TypeVar

import httpx2
import pytest
from pydantic import TypeAdapter

from fake_provider.boundary import Boundary
from fake_provider.contract import Contract
from fake_provider.engine import Attempt, Engine
from fake_provider.facts import AnswerEnded, Fact, FaultStruck, JobCreated, ProviderFact
from fake_provider.faults import AnyFault
from fake_provider.transport import InProcessTransport
from fake_provider.work import Work
from harness.simulation import SimulatedClock, SimulatedHost, SimulationLoop

BASE_URL = "http://provider.test"
SECRET = "whsec_" + "c2VjcmV0" * 4
FAULTS: TypeAdapter[tuple[AnyFault, ...]] = TypeAdapter(tuple[AnyFault, ...])

T = TypeVar("T")
F = TypeVar("F", bound=Fact)


class World:
    """One provider and all that is around it. Everything that happens is in ``facts``."""

    def __init__(
        self,
        *faults: Mapping[str, Any],
        contract: Mapping[str, Any] | Contract | None = None,
        work: Mapping[str, Work] | None = None,
        seed: int = 1,
        receiver: Sequence[int | None] = (),
    ) -> None:
        """Args:
        faults: as in a scenario file.
        receiver: what the receiver of webhooks answers in turn; 200 when these are used up.
        """
        self.facts: list[ProviderFact] = []
        self.times: list[float] = []
        self.received: list[tuple[float, Attempt]] = []
        self.done_to_hosts: list[tuple[str, str]] = []
        self.clocks_set: list[tuple[str, float]] = []
        self._answers = list(receiver)
        self._hosts: dict[str, SimulatedHost] = {}
        self.boundary = Boundary(
            contract if isinstance(contract, Contract) else Contract.model_validate(contract or {}),
            base_url=BASE_URL,
            random=Random(seed),
            record=self._record,
            work=work or {},
            faults=FAULTS.validate_python(faults),
            webhook_secrets=[SECRET],
        )
        self._loop = SimulationLoop()
        self.clock = SimulatedClock(self._loop)
        self._started_at = self.clock.now()
        self.engine = Engine(self.boundary, self.clock, hosts=self, deliver=self._deliver)

    @property
    def elapsed(self) -> float:
        """Seconds since the world began."""
        return round(self.clock.now() - self._started_at, 6)

    def _record(self, fact: ProviderFact) -> None:
        self.facts.append(fact)
        self.times.append(self.elapsed)

    async def _deliver(self, attempt: Attempt) -> int | None:
        attempt.worker = "w1"
        self.received.append((self.elapsed, attempt))
        return self._answers.pop(0) if self._answers else 200

    # -- HostControl

    def host(self, worker: str) -> SimulatedHost:
        return self._hosts.setdefault(worker, SimulatedHost(worker))

    def kill(self, worker: str) -> None:
        self.done_to_hosts.append(("kill", worker))
        self.host(worker).kill()

    def stop(self, worker: str, for_s: float | None) -> None:
        self.done_to_hosts.append(("stop", worker))
        self.host(worker).freeze()
        if for_s is not None:
            self._loop.call_later(for_s, self.host(worker).thaw, self._loop)

    def set_clock(self, worker: str, ahead_s: float) -> None:
        self.clocks_set.append((worker, ahead_s))

    def is_running(self, worker: str) -> bool:
        return not self.host(worker).frozen

    # -- what tests do

    def run(self, story: Callable[["World"], Awaitable[T]]) -> T:
        """Play a story in virtual time."""
        asyncio.set_event_loop(self._loop)

        async def play() -> T:
            self.engine.start()
            try:
                return await story(self)
            finally:
                await self.engine.close()

        try:
            return self._loop.run_until_complete(play())
        finally:
            asyncio.set_event_loop(None)

    def close(self) -> None:
        self._loop.close()

    def on_host(self, worker: str, story: Callable[[], Awaitable[T]]) -> "asyncio.Task[T]":
        """Start something that lives and dies with a worker."""

        async def lives() -> T:
            return await story()

        return self.host(worker).spawn(self._loop, lives())

    def client(self, worker: str = "w1", timeout: float | None = 1.0) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(
            transport=InProcessTransport(self.engine, worker),
            base_url=BASE_URL,
            headers={"Authorization": "Bearer test"},
            timeout=timeout,
            trust_env=False,
        )

    def of(self, kind: type[F]) -> list[F]:
        """Return the facts of one kind, in order."""
        return [fact for fact in self.facts if isinstance(fact, kind)]

    @property
    def jobs(self) -> list[str]:
        return [fact.job for fact in self.of(JobCreated)]

    @property
    def struck(self) -> list[str]:
        return [fact.kind for fact in self.of(FaultStruck)]

    @property
    def fates(self) -> list[str]:
        return [fact.fate.value for fact in self.of(AnswerEnded)]


def request_of(operation: str = "op-1", **parameters: Any) -> dict[str, Any]:
    """Return a create request's body."""
    return {"kind": "report", "client_reference": operation, "parameters": parameters}


class Jobs:
    """The four calls of the jobs dialect, as short as tests want them."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self.client = client

    async def create(
        self,
        operation: str = "op-1",
        *,
        key: str | None = "key-1",
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx2.Response:
        keyed = {"Idempotency-Key": f'"{key}"'} if key is not None else {}
        return await self.client.post(
            "/v1/jobs", json=dict(body or request_of(operation)), headers={**keyed, **(headers or {})}
        )

    async def created(self, operation: str = "op-1", *, key: str | None = "key-1") -> str:
        """Create a job and return its id."""
        answer = await self.create(operation, key=key)
        assert answer.is_success, answer.text
        return str(answer.json()["id"])

    async def status(self, job: str) -> httpx2.Response:
        return await self.client.get(f"/v1/jobs/{job}")

    async def cancel(self, job: str) -> httpx2.Response:
        return await self.client.delete(f"/v1/jobs/{job}")

    async def result(self, job: str) -> httpx2.Response:
        return await self.client.get(f"/v1/jobs/{job}/result")

    async def look_up(self, **by: str) -> httpx2.Response:
        return await self.client.get("/v1/jobs", params=by)


class Play:
    """Makes a world, plays a story in it with one client, and returns the world."""

    def __init__(self) -> None:
        self._worlds: list[World] = []

    def world(self, *faults: Mapping[str, Any], **options: Any) -> World:
        """Return a world in which nothing is played yet."""
        world = World(*faults, **options)
        self._worlds.append(world)
        return world

    def close(self) -> None:
        for world in self._worlds:
            world.close()

    def __call__(
        self,
        story: Callable[[World, Jobs], Awaitable[object]],
        *faults: Mapping[str, Any],
        timeout: float | None = 1.0,
        **options: Any,
    ) -> World:
        world = self.world(*faults, **options)

        async def with_client(world: World) -> None:
            async with world.client(timeout=timeout) as client:
                await story(world, Jobs(client))

        world.run(with_client)
        return world


@pytest.fixture
def play() -> Iterator[Play]:
    play = Play()
    yield play
    play.close()
