"""Unmodified code in virtual time: whichever library, blocking or not, and everything back in its place afterwards."""

import asyncio
import random
import secrets
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from time import sleep as taken_by_name
from typing import Any, Final

import httpx
import httpx2
import pytest
import respx

from harness.history import SubjectComplained
from harness.patching import PatchedHost, patched
from harness.runner import Result, run
from harness.simulation import EPOCH
from harness.stage import SubjectError
from harness.subject import Claim
from harness.subjects import Subject
from scenarios.model import Scenario

REAL_SLEEP: Final = time.sleep
HOUR: Final = 3_600


def story(*faults: dict[str, Any], **more: Any) -> Scenario:
    steps = [{"at": 0, "do": "submit", "operation": "op-1"}]
    return Scenario.model_validate(
        {"name": "a-story", "summary": "One operation.", "steps": steps, "faults": faults, **more}
    )


def play(build: Callable[[PatchedHost], Any], scenario: Scenario | None = None, seed: int = 0) -> Result:
    subject = Subject(name="here:build", patched=patched()(build))
    return run(scenario or story(), subject, mode="patched", seed=seed)


class Base:
    """What the clients here have in common: they create, read the status until the end, and claim it."""

    def __init__(self, host: PatchedHost) -> None:
        self.host = host
        self.claims: dict[str, Claim] = {}
        self.headers = {
            "Authorization": host.authorization,
            "Idempotency-Key": '"a-key-that-is-long-enough-to-be-nobody-elses"',
            "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        }

    def options(self) -> dict[str, Any]:
        return {"base_url": self.host.base_url, "headers": self.headers, "timeout": 1.0, "trust_env": False}

    def claim(self, operation: str, state: str, job: str | None = None) -> None:
        self.claims[operation] = Claim(operation=operation, state=state, remote_job=job)

    def report(self) -> list[Claim]:
        return list(self.claims.values())


class Blocking(Base):
    library: Any = httpx

    def submit(self, operation: str, request: Mapping[str, Any]) -> None:
        self.claim(operation, "create_pending")
        with self.library.Client(**self.options()) as client:
            job = None
            while job is None:
                try:
                    job = client.post("/v1/jobs", json=request).json()
                except self.library.TransportError:
                    time.sleep(0.5)
            delay = 1.0
            while job["status"] not in {"succeeded", "failed", "cancelled"}:
                time.sleep(delay)
                delay = min(2.0, delay * 2)
                job = client.get(f"/v1/jobs/{job['id']}").json()
            client.get(f"/v1/jobs/{job['id']}/result")
        self.claim(operation, job["status"], job["id"])


class BlockingOnHttpx2(Blocking):
    library = httpx2


class Asynchronous(Base):
    library: Any = httpx

    async def submit(self, operation: str, request: Mapping[str, Any]) -> None:
        self.claim(operation, "create_pending")
        async with self.library.AsyncClient(**self.options()) as client:
            job = None
            while job is None:
                try:
                    job = (await client.post("/v1/jobs", json=request)).json()
                except self.library.TransportError:
                    await asyncio.sleep(0.5)
            delay = 1.0
            while job["status"] not in {"succeeded", "failed", "cancelled"}:
                await asyncio.sleep(delay)
                delay = min(2.0, delay * 2)
                job = (await client.get(f"/v1/jobs/{job['id']}")).json()
            await client.get(f"/v1/jobs/{job['id']}/result")
        self.claim(operation, job["status"], job["id"])


class AsynchronousOnHttpx2(Asynchronous):
    library = httpx2


CLIENTS = [Blocking, BlockingOnHttpx2, Asynchronous, AsynchronousOnHttpx2]


@pytest.mark.parametrize("client", CLIENTS)
def test_any_library_and_manner_passes_in_virtual_time(client: type[Base]) -> None:
    result = play(client, story(work={"default": {"takes_s": HOUR}}, timing={"result_deadline_s": 2 * HOUR}))
    assert result.outcome.verdict == "pass", result.outcome.reason
    assert result.outcome.mode == "patched"
    assert list(result.history)[-1].at > HOUR


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("kind", ["answer_lost", "connection_reset", "request_lost"])
def test_a_broken_connection_reaches_it_as_its_own_librarys_error(client: type[Base], kind: str) -> None:
    point = "before_receipt" if kind == "request_lost" else "committed"
    result = play(client, story({"kind": kind, "at": f"create#1:{point}"}, jobs={"op-1": 1}))
    assert result.outcome.verdict == "pass", result.outcome.reason
    assert result.outcome.faults_struck == 1


@pytest.mark.parametrize("client", CLIENTS)
def test_equal_seeds_give_equal_histories(client: type[Base]) -> None:
    scenario = story({"kind": "answer_lost", "at": "create#1:committed"})
    first, again = play(client, scenario, 7), play(client, scenario, 7)
    assert first.outcome.history_sha256 == again.outcome.history_sha256
    assert first.outcome.history_sha256 != play(client, scenario, 8).outcome.history_sha256


def test_chance_comes_from_the_seed() -> None:
    seen: list[Any] = []

    class Draws(Blocking):
        def submit(self, operation: str, request: Mapping[str, Any]) -> None:
            seen.append((random.random(), uuid.uuid4(), secrets.token_hex()))

    before = random.getstate()
    for seed in (1, 1, 2):
        play(Draws, seed=seed)
    assert seen[0] == seen[1]
    assert not set(seen[1]) & set(seen[2])
    assert random.getstate() == before
    assert uuid.uuid4() not in seen[0]


def test_the_time_of_day_goes_along_however_it_is_asked_for() -> None:
    seen: list[float] = []

    class Looks(Blocking):
        def submit(self, operation: str, request: Mapping[str, Any]) -> None:
            began = time.monotonic()
            for pause in (time.sleep, taken_by_name):
                pause(4)
                seen.extend((time.time() - EPOCH, datetime.now(UTC).timestamp() - EPOCH, time.monotonic() - began))
            super().submit(operation, request)

    play(Looks)
    assert seen == pytest.approx([4] * 3 + [8] * 3)


def test_several_operations_wait_side_by_side() -> None:
    ended: dict[str, float] = {}

    class Sleeps(Blocking):
        def submit(self, operation: str, request: Mapping[str, Any]) -> None:
            self.claim(operation, "create_pending")
            time.sleep(10 if operation == "op-1" else 5)
            ended[operation] = time.time() - EPOCH

    steps = [{"at": 0, "do": "submit", "operation": name} for name in ("op-1", "op-2")]
    play(Sleeps, story(steps=steps))
    assert ended == pytest.approx({"op-2": 5, "op-1": 10})
    assert list(ended) == ["op-2", "op-1"]


def test_asynchronous_code_may_hand_blocking_code_to_a_thread() -> None:
    class HandsOver(Asynchronous):
        async def submit(self, operation: str, request: Mapping[str, Any]) -> None:
            await asyncio.to_thread(time.sleep, 5)
            assert time.time() - EPOCH == pytest.approx(5)
            await super().submit(operation, request)

    result = play(HandsOver)
    assert result.outcome.verdict == "pass", result.outcome.reason


def complaints(result: Result) -> list[str]:
    return [entry.fact.message for entry in result.history if isinstance(entry.fact, SubjectComplained)]


def test_blocking_in_asynchronous_code_is_refused() -> None:
    class Blocks(Asynchronous):
        async def submit(self, operation: str, request: Mapping[str, Any]) -> None:
            time.sleep(1)  # noqa: ASYNC251

    (complaint,) = complaints(play(Blocks))
    assert "time.sleep() in asynchronous code" in complaint


def test_a_blocking_request_in_asynchronous_code_is_refused() -> None:
    class Blocks(Asynchronous):
        async def submit(self, operation: str, request: Mapping[str, Any]) -> None:
            httpx2.get(f"{self.host.base_url}/v1/jobs/none")

    (complaint,) = complaints(play(Blocks))
    assert "--mode process" in complaint


def test_a_client_that_waits_in_real_time_makes_the_run_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.subjects.patched.HUNG_S", 0.05)
    never = threading.Event()

    class Waits(Blocking):
        def submit(self, operation: str, request: Mapping[str, Any]) -> None:
            never.wait(5)

    result = play(Waits)
    never.set()
    assert result.outcome.verdict == "unknown"
    assert "did not come back within 0.05 real seconds" in result.outcome.reason


def test_code_that_still_waits_when_the_run_is_over_is_unwound() -> None:
    unwound = threading.Event()

    class Sleeps(Blocking):
        def submit(self, operation: str, request: Mapping[str, Any]) -> None:
            try:
                time.sleep(10_000_000)
            finally:
                unwound.set()

    play(Sleeps)
    assert unwound.is_set()


@pytest.mark.parametrize("client", CLIENTS)
def test_everything_is_back_in_its_place_afterwards(client: type[Base]) -> None:
    play(client)
    assert time.sleep is REAL_SLEEP is taken_by_name
    assert abs(time.time() - EPOCH) > 1
    assert type(datetime.now(UTC)) is datetime
    assert not any(mocker.routers for mocker in respx.mocks.Mocker.registry.values())


def test_a_factory_that_makes_no_client_is_refused() -> None:
    with pytest.raises(
        SubjectError, match="a object without submit and report; a client has the methods submit and report"
    ):
        play(lambda _host: object())


def test_a_story_it_cannot_be_part_of_is_refused() -> None:
    with pytest.raises(SubjectError, match="has one worker"):
        play(Blocking, story(workers=2))
