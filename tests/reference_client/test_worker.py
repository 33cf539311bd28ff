"""The shell: intent before each call, outcome after it, and nothing at all without the lease (W4.1, W9)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from random import Random
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from harness.simulation import SimulatedClock, SimulationLoop
from reference_client.adapters.jobs import JobsAdapter
from reference_client.caller import Caller
from reference_client.client import ReferenceClient
from reference_client.config import Terms, Timing
from reference_client.credentials import GivenCredential
from reference_client.files import ResultFiles
from reference_client.lifecycle import LocalState
from reference_client.operation import Call
from reference_client.stores.protocol import StoreRefused
from reference_client.stores.sqlite import SQLiteStore
from reference_client.worker import Worker
from reference_client.workflow import Workflow

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from reference_client.operation import Operation
    from reference_client.steps import Step
    from reference_client.stores.protocol import Lease

S = LocalState
BASE = "http://provider.test"
TIMING = Timing(
    request_timeout_s=1, poll_first_s=0.5, poll_cap_s=2, lease_s=2, create_deadline_s=30, result_deadline_s=60
)
RESULT = b'{"client_reference":"op-1","records":[{"id":"r1","status":"ok"}]}'
PATIENCE_S = 300.0  # of virtual time; the longest story takes some ten seconds

Tell = Callable[[SimulatedClock], Coroutine[Any, Any, None]]


def play(tell: Tell) -> None:
    """Tell a story in virtual time."""
    with asyncio.Runner(loop_factory=SimulationLoop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, SimulationLoop)
        runner.run(tell(SimulatedClock(loop)))


class Provider:
    """A provider that does what is right unless told otherwise, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[httpx2.Request] = []
        self.polls_until_done = 2
        self.result = RESULT

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(request)
        job: dict[str, Any] = {"id": "job_1", "client_reference": "op-1", "status": "running"}
        if request.method == "POST":
            return httpx2.Response(202, json=job, headers={"location": f"{BASE}/v1/jobs/job_1"})
        if request.url.path.endswith("/result"):
            return httpx2.Response(200, content=self.result, headers={"content-type": "application/json"})
        self.polls_until_done -= 1
        return httpx2.Response(200, json=job | {"status": "succeeded" if self.polls_until_done <= 0 else "running"})

    @property
    def calls(self) -> list[str]:
        return [f"{request.method} {request.url.path}" for request in self.asked]


class Bench:
    """A worker on a store in memory, with a provider in the same process."""

    def __init__(self, clock: SimulatedClock, store: SQLiteStore | None = None, **options: Any) -> None:
        self.clock = clock
        self.provider = Provider()
        self.store = store or SQLiteStore(":memory:", now=clock.now)
        terms = Terms()
        self.workflow = Workflow(JobsAdapter(terms), terms=terms, timing=TIMING, random=Random(1))
        self.caller = Caller(
            base_url=BASE,
            credentials=GivenCredential("Bearer canary"),
            timing=TIMING,
            transport=httpx2.MockTransport(self.provider),
        )
        self.worker = Worker(
            "w1", store=self.store, workflow=self.workflow, caller=self.caller, clock=clock, timing=TIMING, **options
        )
        self.client = ReferenceClient(self.worker, target=BASE)

    async def until(self, condition: Callable[[Operation], bool]) -> Operation:
        """Work until the operation is as wanted, then stop in good order."""
        working = asyncio.create_task(self.client.run())
        deadline = self.clock.now() + PATIENCE_S
        while not condition(await self.store.load("op-1")) and not working.done() and self.clock.now() < deadline:
            await self.clock.sleep(0.05)
        self.client.stop()
        await working
        await self.caller.close()
        operation = await self.store.load("op-1")
        assert condition(operation), operation
        return operation

    async def until_rest(self) -> Operation:
        return await self.until(lambda operation: operation.at_rest)


def test_it_does_one_thing_after_the_other_and_comes_to_rest() -> None:
    async def tell(clock: SimulatedClock) -> None:
        bench = Bench(clock)
        await bench.client.submit("op-1", {"kind": "report"}, authorised_by="ann")
        operation = await bench.until_rest()
        assert operation.state is S.SUCCEEDED
        assert bench.provider.calls == [
            "POST /v1/jobs",
            "GET /v1/jobs/job_1",
            "GET /v1/jobs/job_1",
            "GET /v1/jobs/job_1/result",
        ]
        assert await bench.store.result("op-1") == RESULT

    play(tell)


def test_each_call_has_its_intent_on_record_before_and_its_outcome_after() -> None:
    async def tell(clock: SimulatedClock) -> None:
        bench = Bench(clock)
        seen: list[int] = []
        handler = bench.provider.__call__

        async def look(request: httpx2.Request) -> httpx2.Response:
            history = await bench.store.history("op-1")
            seen.append(
                sum(entry.begins is not None for entry in history) - sum(entry.ends is not None for entry in history)
            )
            assert (await bench.store.load("op-1")).in_flight is not None
            return handler(request)

        bench.caller._transport._inner = httpx2.MockTransport(look)
        await bench.client.submit("op-1", {}, authorised_by="ann")
        await bench.until_rest()
        assert seen == [1, 1, 1, 1]
        calls = [entry.ends for entry in await bench.store.history("op-1") if entry.ends is not None]
        assert calls == [Call.CREATE, Call.STATUS, Call.STATUS, Call.RESULT]

    play(tell)


def test_every_call_is_in_the_operations_one_trace_with_a_span_of_its_own() -> None:
    async def tell(clock: SimulatedClock) -> None:
        bench = Bench(clock)
        await bench.client.submit("op-1", {}, authorised_by="ann")
        operation = await bench.until_rest()
        parents = [request.headers["traceparent"].split("-") for request in bench.provider.asked]
        assert {trace for _, trace, _, _ in parents} == {operation.trace_id}
        assert len({span for _, _, span, _ in parents}) == len(parents)
        assert operation.idempotency_token not in str(parents)

    play(tell)


class _FreezesAfterIntent(SQLiteStore):
    """The worker is stopped right after its first intent is durable, and comes back when its lease has long expired."""

    frozen_s = 10.0

    async def commit(self, lease: Lease, step: Step, *, taken: Sequence[int] = (), lasts_s: float = 0.0) -> Lease:
        kept = await super().commit(lease, step, taken=taken, lasts_s=lasts_s)
        if step.operation.in_flight is not None and self.frozen_s:
            frozen_s, self.frozen_s = self.frozen_s, 0.0
            await asyncio.sleep(frozen_s)
        return kept


def test_a_worker_that_wakes_up_after_its_lease_sends_nothing() -> None:
    async def tell(clock: SimulatedClock) -> None:
        store = _FreezesAfterIntent(":memory:", now=clock.now)
        bench = Bench(clock, store)
        await bench.client.submit("op-1", {}, authorised_by="ann")
        await bench.until_rest()
        await clock.sleep(20)  # the sleeper has woken up by now
        history = await store.history("op-1")
        interrupted = next(entry for entry in history if entry.facts.get("error") == "interrupted")
        assert interrupted.after is S.CREATE_UNKNOWN
        assert bench.provider.calls.count("POST /v1/jobs") == 1, "only the one sent later, under a new lease"

    play(tell)


class _RefusesOnce(SQLiteStore):
    """Refuses each write once before it makes it."""

    refused = 0
    _refuse_next = True

    def _maybe(self) -> None:
        self._refuse_next = not self._refuse_next
        if not self._refuse_next:
            self.refused += 1
            raise StoreRefused("disk full")

    async def commit(self, lease: Lease, step: Step, *, taken: Sequence[int] = (), lasts_s: float = 0.0) -> Lease:
        self._maybe()
        return await super().commit(lease, step, taken=taken, lasts_s=lasts_s)

    async def release(
        self, lease: Lease, step: Step | None, *, due_at: float | None, taken: Sequence[int] = ()
    ) -> None:
        self._maybe()
        await super().release(lease, step, due_at=due_at, taken=taken)


def test_a_store_that_refuses_each_write_once_loses_nothing_and_doubles_nothing() -> None:
    async def tell(clock: SimulatedClock) -> None:
        store = _RefusesOnce(":memory:", now=clock.now)
        bench = Bench(clock, store)
        await bench.client.submit("op-1", {}, authorised_by="ann")
        operation = await bench.until_rest()
        assert operation.state is S.SUCCEEDED
        assert store.refused > 8
        assert bench.provider.calls.count("POST /v1/jobs") == 1
        assert bench.provider.calls.count("GET /v1/jobs/job_1/result") == 1

    play(tell)


class _Offline(SQLiteStore):
    down = 20

    async def claim(self, owner: str, lease_s: float) -> Any:
        if self.down:
            self.down -= 1
            raise StoreRefused("connection lost")
        return await super().claim(owner, lease_s)


def test_a_store_that_is_away_is_waited_for() -> None:
    async def tell(clock: SimulatedClock) -> None:
        store = _Offline(":memory:", now=clock.now)
        bench = Bench(clock, store)
        await bench.client.submit("op-1", {}, authorised_by="ann")
        before = clock.now()
        await bench.until_rest()
        assert store.down == 0
        assert clock.now() - before > 20, "with waits that grow"

    play(tell)


def test_a_stop_command_wakes_a_sleeping_worker() -> None:
    async def tell(clock: SimulatedClock) -> None:
        bench = Bench(clock)
        bench.provider.polls_until_done = 10**9
        await bench.client.submit("op-1", {}, authorised_by="ann")
        working = asyncio.create_task(bench.until(lambda operation: operation.cancel_calls == 1))
        await clock.sleep(3)
        await bench.client.cancel("op-1", who="ann", why="enough")
        await working
        assert "DELETE /v1/jobs/job_1" in bench.provider.calls

    play(tell)


def test_a_large_result_goes_to_a_file_named_for_its_digest(tmp_path: Path) -> None:
    async def tell(clock: SimulatedClock) -> None:
        bench = Bench(clock, files=ResultFiles(tmp_path / "results"))
        bench.workflow.inline_limit_bytes = 10
        await bench.client.submit("op-1", {}, authorised_by="ann")
        operation = await bench.until_rest()
        collected = operation.collected
        assert collected is not None
        (file,) = (tmp_path / "results").iterdir()
        assert collected.location == str(file)
        assert file.name == f"{collected.sha256}.result"
        assert file.read_bytes() == RESULT
        assert await bench.store.result("op-1") is None

    play(tell)


def test_without_a_place_for_files_a_large_result_stays_in_the_store() -> None:
    async def tell(clock: SimulatedClock) -> None:
        bench = Bench(clock)
        bench.workflow.inline_limit_bytes = 10
        await bench.client.submit("op-1", {}, authorised_by="ann")
        operation = await bench.until_rest()
        assert operation.collected is not None
        assert operation.collected.location == "store"
        assert await bench.store.result("op-1") == RESULT

    play(tell)


def test_a_file_that_cannot_be_written_is_a_refusal_and_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("in the way")
    with pytest.raises(StoreRefused, match="results"):
        ResultFiles(tmp_path / "results").keep(b"x", sha256="0")


def test_several_operations_are_in_hand_at_once() -> None:
    async def tell(clock: SimulatedClock) -> None:
        bench = Bench(clock)
        together: list[int] = []
        inside = 0

        async def slow(request: httpx2.Request) -> httpx2.Response:
            nonlocal inside
            inside += 1
            together.append(inside)
            await asyncio.sleep(0.5)
            inside -= 1
            reference = json.loads(request.content)["client_reference"]
            return httpx2.Response(
                202, json={"id": f"job_{reference}", "client_reference": reference, "status": "queued"}
            )

        bench.caller._transport._inner = httpx2.MockTransport(slow)
        for number in range(1, 5):
            await bench.client.submit(f"op-{number}", {}, authorised_by="ann")
        await bench.until(lambda operation: operation.remote_job_id is not None)
        assert max(together) == 4

    play(tell)


def test_the_same_request_once_more_changes_nothing() -> None:
    async def tell(clock: SimulatedClock) -> None:
        bench = Bench(clock)
        first = await bench.client.submit("op-1", {"kind": "report"}, authorised_by="ann")
        again = await bench.client.submit("op-1", {"kind": "report"}, authorised_by="bob")
        assert again == first
        assert len(await bench.store.history("op-1")) == 1

    play(tell)


def test_two_workers_on_one_store_poll_a_job_once_each_time() -> None:
    async def tell(clock: SimulatedClock) -> None:
        store = SQLiteStore(":memory:", now=clock.now)
        one, two = Bench(clock, store), Bench(clock, store)
        two.worker.name = "w2"
        two.provider = one.provider
        two.caller._transport._inner = httpx2.MockTransport(one.provider)
        one.provider.polls_until_done = 4
        await one.client.submit("op-1", {}, authorised_by="ann")
        await asyncio.gather(one.until_rest(), two.until_rest())
        assert one.provider.calls.count("POST /v1/jobs") == 1
        assert one.provider.calls.count("GET /v1/jobs/job_1") == 4
        assert one.provider.calls.count("GET /v1/jobs/job_1/result") == 1

    play(tell)


def test_work_that_a_dead_worker_left_is_taken_over_after_its_lease_and_not_before() -> None:
    async def tell(clock: SimulatedClock) -> None:
        store = SQLiteStore(":memory:", now=clock.now)
        bench = Bench(clock, store)
        await bench.client.submit("op-1", {}, authorised_by="ann")
        assert await store.claim("dead", 2) is not None
        before = clock.now()
        bench.provider.polls_until_done = 1
        await bench.until(lambda operation: operation.create_attempts > 0)
        assert 2 <= clock.now() - before < 2.2

    play(tell)
