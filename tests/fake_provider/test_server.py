"""The provider on a real socket: faults are physical, and what happened is recorded as in process."""

from __future__ import annotations

import asyncio
import errno
import json
from contextlib import asynccontextmanager
from random import Random
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from aiohttp import web
from pydantic import TypeAdapter

from fake_provider.boundary import Boundary
from fake_provider.clock import SystemClock
from fake_provider.contract import Contract
from fake_provider.engine import Engine
from fake_provider.facts import AnswerEnded, EventDelivered, JobCreated, ProviderFact, RequestSent
from fake_provider.faults import AnyFault
from fake_provider.server import Server, WebhookPost
from fake_provider.work import Work

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from fake_provider.engine import Attempt

FAULTS: TypeAdapter[tuple[AnyFault, ...]] = TypeAdapter(tuple[AnyFault, ...])
CREATE = {"kind": "report", "client_reference": "op-1"}
SECRET = "whsec_" + "c2VjcmV0" * 4


class Hosts:
    """Kills by calling back: the test is its own client's host."""

    def __init__(self) -> None:
        self.killed = asyncio.Event()

    def kill(self, worker: str) -> None:
        self.killed.set()

    def stop(self, worker: str, for_s: float | None) -> None:
        raise AssertionError("no test here stops a worker")

    def set_clock(self, worker: str, ahead_s: float) -> None:
        raise AssertionError("no test here sets a clock")

    def is_running(self, worker: str) -> bool:
        return True


class Served:
    def __init__(self) -> None:
        self.facts: list[ProviderFact] = []
        self.recorded = asyncio.Event()
        self.hosts = Hosts()
        self.url = ""

    def record(self, fact: ProviderFact) -> None:
        self.facts.append(fact)
        self.recorded.set()

    async def until(self, seen: Callable[[list[ProviderFact]], object]) -> None:
        """Wait for facts; a test that waits in vain is ended by its time-out."""
        async with asyncio.timeout(5):
            while not seen(self.facts):
                self.recorded.clear()
                await self.recorded.wait()

    def fates(self) -> list[str]:
        return [fact.fate.value for fact in self.facts if isinstance(fact, AnswerEnded)]

    async def raw(self, request: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        host, port = self.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(request)
        await writer.drain()
        return reader, writer


def _wire(body: bytes = json.dumps(CREATE).encode(), *, method: str = "POST", path: str = "/v1/jobs") -> bytes:
    return (
        f"{method} {path} HTTP/1.1\r\nHost: provider\r\nAuthorization: Bearer x\r\nIdempotency-Key: k\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode() + body


async def _nobody(attempt: Attempt) -> int | None:
    return None


@asynccontextmanager
async def _serving(
    *faults: dict[str, Any],
    contract: dict[str, Any] | None = None,
    deliver: Callable[[Attempt], Awaitable[int | None]] = _nobody,
    takes_s: float = 0.05,
) -> AsyncIterator[Served]:
    served = Served()
    boundary = Boundary(
        Contract.model_validate(contract or {}),
        base_url="http://provider.test",
        random=Random(1),
        record=served.record,
        work={"default": Work(takes_s=takes_s)},
        faults=FAULTS.validate_python(faults),
        webhook_secrets=[SECRET],
    )
    engine = Engine(boundary, SystemClock(), hosts=served.hosts, deliver=deliver)
    engine.start()
    server = Server(engine)
    served.url = await server.open_port("w1")
    try:
        yield served
    finally:
        await server.close()
        await engine.close()


def _client(served: Served, timeout: float = 5.0) -> httpx2.AsyncClient:
    headers = {"Authorization": "Bearer x", "Idempotency-Key": "k"}
    return httpx2.AsyncClient(base_url=served.url, headers=headers, timeout=timeout, trust_env=False)


def test_a_job_from_create_to_result() -> None:
    async def story() -> None:
        async with _serving() as served, _client(served) as client:
            created = await client.post("/v1/jobs", json=CREATE)
            assert created.status_code == 202
            assert created.headers["Location"].startswith(served.url + "/v1/jobs/job_")
            await served.until(lambda facts: any(getattr(fact, "after", "") == "succeeded" for fact in facts))
            told = (await client.get(created.headers["Location"])).json()
            assert len((await client.get(told["result"]["href"])).json()["records"]) == 3
            assert served.fates() == ["delivered"] * 3

    asyncio.run(story())


@pytest.mark.parametrize("point", ["before_receipt", "received", "committed", "answering"])
def test_a_reset_is_a_tcp_reset(point: str) -> None:
    async def story() -> None:
        async with _serving({"kind": "connection_reset", "at": f"create#1:{point}"}) as served:
            reader, writer = await served.raw(_wire())
            with pytest.raises(ConnectionResetError) as reset:
                await reader.read(-1)
            assert reset.value.errno == errno.ECONNRESET
            writer.close()
            await served.until(lambda facts: isinstance(facts[-1], AnswerEnded))
            assert served.fates() == ["reset"]

    asyncio.run(story())


def test_a_cut_answer_announces_its_whole_length_and_sends_less() -> None:
    async def story() -> None:
        async with _serving({"kind": "answer_cut", "at": "create#1:answering"}) as served:
            reader, writer = await served.raw(_wire())
            head, _, body = (await reader.read(-1)).partition(b"\r\n\r\n")
            length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            assert 0 < len(body) < length
            writer.close()
            assert served.fates() == ["cut"]

    asyncio.run(story())


def test_a_lost_answer_is_silence_until_the_client_hangs_up() -> None:
    async def story() -> None:
        async with _serving({"kind": "answer_lost", "at": "create#1:committed"}) as served:
            async with _client(served, timeout=0.1) as client:
                with pytest.raises(httpx2.ReadTimeout):
                    await client.post("/v1/jobs", json=CREATE)
                assert (await client.post("/v1/jobs", json=CREATE)).headers["Idempotency-Replayed"] == "true"
            assert served.fates() == ["lost", "delivered"]

    asyncio.run(story())


def test_a_port_closes_though_a_client_waits_for_a_lost_answer() -> None:
    async def story() -> None:
        async with asyncio.timeout(5):
            async with _serving({"kind": "answer_lost", "at": "create#1:committed"}) as served:
                reader, writer = await served.raw(_wire())
                await served.until(lambda facts: served.fates() == ["lost"])
            assert await reader.read(-1) == b""
            writer.close()

    asyncio.run(story())


def test_a_client_that_hung_up_before_its_answer_leaves_no_word_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        async with _serving() as served:
            reader, writer = await served.raw(_wire().replace(b"Host:", b"Connection: close\r\nHost:"))
            writer.write_eof()
            await served.until(lambda facts: served.fates())
            await reader.read(-1)
            writer.close()

    asyncio.run(story())
    assert caplog.text == ""


def test_a_lost_request_reaches_nobody() -> None:
    async def story() -> None:
        async with _serving({"kind": "request_lost", "at": "create#1:before_receipt"}) as served:
            async with _client(served, timeout=0.1) as client:
                with pytest.raises(httpx2.ReadTimeout):
                    await client.post("/v1/jobs", json=CREATE)
            assert [type(fact).__name__ for fact in served.facts] == ["RequestSent", "FaultStruck", "AnswerEnded"]

    asyncio.run(story())


def test_an_answer_that_is_slow_amid_its_body_arrives_in_two_parts() -> None:
    async def story() -> None:
        fault = {"kind": "slow_answer", "at": "create#1:answering", "seconds": 0.2}
        async with _serving(fault) as served:
            reader, writer = await served.raw(_wire())
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            first = await reader.readexactly(length // 2)
            assert served.fates() == []
            assert json.loads(first + await reader.readexactly(length - length // 2))["status"] == "queued"
            writer.close()
            await served.until(lambda facts: served.fates() == ["delivered"])

    asyncio.run(story())


def test_a_client_that_goes_away_is_noticed_and_its_request_carried_out() -> None:
    async def story() -> None:
        fault = {"kind": "slow_answer", "at": "create#1:received", "seconds": 0.2}
        async with _serving(fault) as served:
            _, writer = await served.raw(_wire())
            await served.until(lambda facts: len(facts) > 1)
            writer.transport.abort()
            await served.until(lambda facts: served.fates() == ["abandoned"])
            assert any(isinstance(fact, JobCreated) for fact in served.facts)

    asyncio.run(story())


@pytest.mark.parametrize(("point", "fate"), [("committed", "abandoned"), ("delivered", "delivered")])
def test_a_worker_is_killed_before_or_after_its_answer_was_sent(point: str, fate: str) -> None:
    async def story() -> None:
        async with _serving({"kind": "kill", "at": f"create#1:{point}"}) as served:
            reader, writer = await served.raw(_wire())
            await served.hosts.killed.wait()
            answer = await reader.read(1 << 16)
            assert bool(answer) == (point == "delivered")
            writer.close()
            assert served.fates() == [fate]

    asyncio.run(story())


def test_a_request_delivered_twice_reaches_the_provider_twice() -> None:
    async def story() -> None:
        fault = {"kind": "request_duplicated", "at": "create#1:committed"}
        async with (
            _serving(fault, contract={"idempotency": {"mechanism": "none"}}) as served,
            _client(served) as client,
        ):
            assert (await client.post("/v1/jobs", json=CREATE)).status_code == 202
            assert sum(isinstance(fact, JobCreated) for fact in served.facts) == 2

    asyncio.run(story())


def test_a_redirect_leads_to_another_origin_that_is_listened_at() -> None:
    async def story() -> None:
        async with _serving({"kind": "redirect", "at": "create#1:received"}) as served, _client(served) as client:
            location = (await client.post("/v1/jobs", json=CREATE)).headers["Location"]
            assert not location.startswith(served.url)
            await client.post(location, json=CREATE)
            sent = [fact for fact in served.facts if isinstance(fact, RequestSent)]
            assert (sent[1].origin, sent[1].worker) == (location.removesuffix("/v1/jobs"), "w1")

    asyncio.run(story())


def test_each_worker_has_a_port_of_its_own() -> None:
    async def story() -> None:
        async with _serving() as served:
            server = Server(_engine_of(served))
            url = await server.open_port("w2")
            assert url != served.url
            await server.close()

    asyncio.run(story())


def _engine_of(served: Served) -> Engine:
    boundary = Boundary(Contract(), base_url=served.url, random=Random(1), record=served.record)
    engine = Engine(boundary, SystemClock(), hosts=served.hosts, deliver=_nobody)
    engine.start()
    return engine


@pytest.mark.parametrize(
    "soup",
    [
        b"\x00\x01\x02\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /v1/jobs HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"".join(b"X-%d: y\r\n" % number for number in range(5_000)) + b"\r\n",
        b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
        b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
)
def test_after_any_soup_the_next_request_is_answered(soup: bytes) -> None:
    async def story() -> None:
        async with _serving() as served:
            reader, writer = await served.raw(soup)
            writer.write_eof()
            answer = await asyncio.wait_for(reader.read(1 << 16), 5)
            assert b"Traceback" not in answer
            assert answer[:12] in {b"", b"HTTP/1.1 400", b"HTTP/1.0 400", b"HTTP/1.1 404", b"HTTP/1.1 431"}
            writer.close()
            async with _client(served) as client:
                assert (await client.post("/v1/jobs", json=CREATE)).status_code == 202

    asyncio.run(story())


def test_a_body_too_large_is_refused_before_it_is_read_to_its_end() -> None:
    async def story() -> None:
        async with _serving() as served:
            reader, writer = await served.raw(
                b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer x\r\nContent-Length: 9000000000\r\n\r\n"
                + b" " * (3 << 20)
            )
            assert (await reader.read(12)) == b"HTTP/1.1 413"
            writer.close()
            async with _client(served) as client:
                assert (await client.post("/v1/jobs", json=CREATE)).status_code == 202

    asyncio.run(story())


def test_connections_that_say_nothing_hinder_nobody() -> None:
    async def story() -> None:
        async with _serving() as served:
            idle = [await served.raw(b"POST /v1/jobs HTTP/1.1\r\n") for _ in range(200)]
            async with _client(served) as client:
                assert (await client.post("/v1/jobs", json=CREATE)).status_code == 202
            for _, writer in idle:
                writer.close()

    asyncio.run(story())


def test_webhooks_are_posted_and_a_redirect_is_not_followed() -> None:
    async def story() -> None:
        took: list[tuple[str, str]] = []
        statuses = iter([307, 200])

        async def receive(request: web.BaseRequest) -> web.Response:
            took.append((request.path, request.headers["webhook-id"]))
            return web.Response(status=next(statuses), headers={"Location": "/followed"})

        runner = web.ServerRunner(web.Server(receive))
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
        hooks = {"webhooks": {"enabled": True, "retry_delays_s": [0.01]}}
        async with WebhookPost(lambda: ("w1", url)) as deliver, _serving(contract=hooks, deliver=deliver) as served:
            async with _client(served) as client:
                await client.post("/v1/jobs", json=CREATE)
            await served.until(lambda facts: sum(isinstance(fact, EventDelivered) for fact in facts) == 2)
            delivered = [fact for fact in served.facts if isinstance(fact, EventDelivered)]
            assert [(fact.status, fact.worker) for fact in delivered] == [(307, "w1"), (200, "w1")]
            assert [path for path, _ in took] == ["/hook", "/hook"]
        await runner.cleanup()

    asyncio.run(story())


def test_a_webhook_to_nobody_is_one_without_an_answer() -> None:
    async def story() -> None:
        hooks = {"webhooks": {"enabled": True, "retry_delays_s": []}}
        async with (
            WebhookPost(lambda: ("w1", "http://127.0.0.1:1/")) as deliver,
            _serving(contract=hooks, deliver=deliver) as served,
            _client(served) as client,
        ):
            await client.post("/v1/jobs", json=CREATE)
            await served.until(lambda facts: isinstance(facts[-1], EventDelivered))
            assert served.facts[-1].status is None  # type: ignore[union-attr]

    asyncio.run(story())
