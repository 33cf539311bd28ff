"""What a client sees through respx when something goes wrong: its own library's errors, at its own time-outs."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import httpx
import httpx2
import pytest
from pydantic import TypeAdapter

from fake_provider.boundary import Boundary
from fake_provider.contract import Contract
from fake_provider.engine import Attempt, Engine
from fake_provider.facts import AnswerEnded, FaultStruck, ProviderFact, RequestSent
from fake_provider.faults import AnyFault
from fake_provider.respx_router import Library, ProviderRouter
from harness.simulation import SimulatedClock, SimulationLoop

URL = "http://provider.test"
AUTH = {"Authorization": "Bearer x", "Idempotency-Key": "k"}
FAULTS: TypeAdapter[tuple[AnyFault, ...]] = TypeAdapter(tuple[AnyFault, ...])
LIBRARIES: dict[Library, Any] = {"httpcore": httpx, "httpcore2": httpx2}


class _Hosts:
    def kill(self, worker: str) -> None: ...

    def stop(self, worker: str, for_s: float | None) -> None: ...

    def set_clock(self, worker: str, ahead_s: float) -> None: ...

    def is_running(self, worker: str) -> bool:
        return True


async def _nobody(attempt: Attempt) -> int | None:
    return None


class Place:
    def __init__(self, library: Library, *faults: dict[str, Any]) -> None:
        self.facts: list[ProviderFact] = []
        self.loop = SimulationLoop()
        boundary = Boundary(
            Contract(),
            base_url=URL,
            random=Random(1),
            record=self.facts.append,
            faults=FAULTS.validate_python(faults),
        )
        self.engine = Engine(boundary, SimulatedClock(self.loop), hosts=_Hosts(), deliver=_nobody)
        self.run(self._start())
        self.library = LIBRARIES[library]
        self.router = ProviderRouter(self.engine, using=library, wait=self.run)

    async def _start(self) -> None:
        self.engine.start()

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(work)

    def create(self, **options: Any) -> Any:
        """Create a job, synchronously."""
        with self.library.Client(trust_env=False, timeout=1.5, **options) as client:
            return client.post(f"{URL}/v1/jobs", headers=AUTH, json={"kind": "report", "client_reference": "op-1"})

    async def create_later(self) -> Any:
        """The same, asynchronously."""
        async with self.library.AsyncClient(trust_env=False, timeout=1.5) as client:
            body = {"kind": "report", "client_reference": "op-1"}
            return await client.post(f"{URL}/v1/jobs", headers=AUTH, json=body)

    def seen(self, *, synchronous: bool) -> Any:
        return self.create() if synchronous else self.run(self.create_later())


@pytest.fixture(params=LIBRARIES)
def library(request: pytest.FixtureRequest) -> Library:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def place(library: Library) -> Callable[..., Any]:
    @contextmanager
    def made(*faults: dict[str, Any]) -> Iterator[Place]:
        made_here = Place(library, *faults)
        with made_here.router:
            yield made_here
        made_here.run(made_here.engine.close())
        made_here.loop.close()

    return made


@pytest.mark.parametrize("synchronous", [True, False])
class TestWhatGoesWrong:
    def test_a_lost_answer_is_a_read_time_out_at_the_clients_own_limit(
        self, place: Callable[..., Any], synchronous: bool
    ) -> None:
        with place({"kind": "answer_lost", "at": "create#1:committed"}) as here:
            with pytest.raises(here.library.ReadTimeout):
                here.seen(synchronous=synchronous)
            assert here.loop.time() == pytest.approx(1.5)
            assert [type(fact) for fact in here.facts].count(FaultStruck) == 1

    def test_a_reset_is_a_read_error(self, place: Callable[..., Any], synchronous: bool) -> None:
        with (
            place({"kind": "connection_reset", "at": "create#1:committed"}) as here,
            pytest.raises(here.library.ReadError),
        ):
            here.seen(synchronous=synchronous)

    def test_a_cut_answer_is_a_protocol_error_of_the_body(self, place: Callable[..., Any], synchronous: bool) -> None:
        with (
            place({"kind": "answer_cut", "at": "create#1:answering"}) as here,
            pytest.raises(here.library.RemoteProtocolError, match="without sending complete"),
        ):
            here.seen(synchronous=synchronous)

    def test_a_slow_answer_comes_late_and_whole(self, place: Callable[..., Any], synchronous: bool) -> None:
        with place({"kind": "slow_answer", "at": "create#1:committed", "seconds": 1}) as here:
            assert here.seen(synchronous=synchronous).status_code == 202
            assert here.loop.time() == pytest.approx(1.0)


def test_a_request_to_another_origin_is_on_record_as_such(place: Callable[..., Any]) -> None:
    with place() as here:
        with here.library.Client(trust_env=False) as client:
            assert client.get("http://elsewhere.test/v1/jobs/j", headers=AUTH).status_code == 404
        (sent,) = [fact for fact in here.facts if isinstance(fact, RequestSent)]
        assert sent.origin == "http://elsewhere.test"


def test_an_answer_abandoned_by_its_client_is_recorded_as_abandoned(place: Callable[..., Any]) -> None:
    with place({"kind": "slow_answer", "at": "create#1:committed", "seconds": 9}) as here:
        with pytest.raises(here.library.ReadTimeout):
            here.create()
        here.run(asyncio.sleep(10))
        (ended,) = [fact for fact in here.facts if isinstance(fact, AnswerEnded)]
        assert ended.fate == "abandoned"


def test_a_synchronous_client_is_refused_where_nobody_said_how_it_waits(library: Library) -> None:
    here = Place(library)
    with ProviderRouter(here.engine, using=library), pytest.raises(RuntimeError, match="synchronous client"):
        here.create()
    here.loop.close()


def test_outside_the_router_requests_go_their_own_way(place: Callable[..., Any]) -> None:
    with place() as here:
        pass
    answered = here.library.MockTransport(lambda request: here.library.Response(418))
    assert here.create(transport=answered).status_code == 418
    assert not here.facts
