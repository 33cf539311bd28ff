"""A client that fakes nothing sees the same from the bare core, in process by a transport or through respx (httpx and
httpx2, synchronous and asynchronous), and on a socket, with equal histories.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine
from random import Random
from typing import Any

import httpx
import httpx2
import pytest

from fake_provider.boundary import Boundary
from fake_provider.clock import ManualClock
from fake_provider.contract import Contract
from fake_provider.dialects import DIALECTS
from fake_provider.effects import Send
from fake_provider.engine import Attempt, Engine
from fake_provider.facts import ProviderFact
from fake_provider.presets import PRESETS
from fake_provider.respx_router import Library, ProviderRouter
from fake_provider.server import Server
from fake_provider.transport import InProcessTransport
from fake_provider.wire import Request

URL = "http://provider.test"
AUTH = {"Authorization": "Bearer x"}
SECRET = "whsec_" + "c2VjcmV0" * 4
Seen = tuple[int, list[tuple[str, str]], bytes]
Call = Callable[..., Awaitable[Seen]]
_SOCKETS_OWN = {"server", "date", "content-length"}
Run = tuple[list[ProviderFact], list[Seen]]


class _Hosts:
    def kill(self, worker: str) -> None: ...

    def stop(self, worker: str, for_s: float | None) -> None: ...

    def set_clock(self, worker: str, ahead_s: float) -> None: ...

    def is_running(self, worker: str) -> bool:
        return True


async def _taken(attempt: Attempt) -> int | None:
    return 200


async def _batches(call: Call, clock: ManualClock, boundary: Boundary) -> list[Seen]:
    """The same for the openai-batch dialect."""
    line = b'{"custom_id": "%d", "method": "POST", "url": "/v1/responses", "body": {}}\n'
    lines = b"".join(line % number for number in range(4))
    form = (
        b'--b\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
        b'--b\r\nContent-Disposition: form-data; name="file"; filename="f.jsonl"\r\n\r\n' + lines + b"\r\n--b--\r\n"
    )
    upload = {**AUTH, "Content-Type": "multipart/form-data; boundary=b"}
    seen = [await call("POST", "/v1/files", upload, form)]
    file = json.loads(seen[0][2])["id"]
    asked = {"input_file_id": file, "endpoint": "/v1/responses", "completion_window": "24h"}
    seen += [await call("POST", "/v1/batches", AUTH, json.dumps(asked).encode())]
    job = json.loads(seen[-1][2])["id"]
    for seconds in (0, 1, 2):
        clock.advance(seconds)
        seen.append(await call("GET", f"/v1/batches/{job}", AUTH))
    result = json.loads(seen[-1][2])["output_file_id"]
    for path in (f"files/{file}", f"files/{file}/content", f"files/{result}", f"files/{result}/content"):
        seen.append(await call("GET", f"/v1/{path}", AUTH))
    seen += [
        await call("GET", "/v1/batches?limit=1", AUTH),
        await call("POST", f"/v1/batches/{job}/cancel", AUTH),
        await call("POST", "/v1/batches", AUTH, b"{"),
        await call("DELETE", "/v1/batches", AUTH),
        await call("GET", "/v1/files/none", AUTH),
        await call("GET", f"/v1/batches/{job}", {}),
    ]
    return seen


async def _story(call: Call, clock: ManualClock, boundary: Boundary) -> list[Seen]:
    """Walk through every endpoint, well-behaved and not."""
    body = b'{"kind": "report", "client_reference": "op-1", "request_id": "r-1"}'
    keyed = {**AUTH, "Idempotency-Key": '"k-1"', "X-Client-Operation-Id": "o-1"}
    seen = [
        await call("POST", "/v1/jobs", keyed, body),
        await call("POST", "/v1/jobs", keyed, body),
        await call("POST", "/v1/jobs", keyed, b'{"kind": "other", "request_id": "r-1"}'),
        await call("POST", "/v1/jobs", keyed, b"{"),
        await call("GET", "/v1/jobs?client_reference=op-1", AUTH),
        await call("GET", "/v1/jobs?operation_id=o-1", AUTH),
        await call("GET", "/v1/jobs/none", AUTH),
        await call("GET", "/v1/jobs/none", {}),
    ]
    job = boundary.ledger(clock.now())[0].job
    for seconds in (0, 1, 2):
        clock.advance(seconds)
        seen.append(await call("GET", f"/v1/jobs/{job}", AUTH))
    seen.extend(
        [
            await call("GET", f"/v1/jobs/{job}/result", AUTH),
            await call("GET", f"/v1/jobs/{job}/result", AUTH),
            await call("DELETE", f"/v1/jobs/{job}", AUTH),
            await call("POST", f"/v1/jobs/{job}/cancel", AUTH),
        ]
    )
    return seen


class Case:
    """A provider, and the story that is played to it."""

    def __init__(self, dialect: str, contract: Contract, story: Callable[..., Coroutine[Any, Any, list[Seen]]]) -> None:
        self.dialect = dialect
        # Webhooks run beside the calls on a socket: their order among them is no promise.
        self.contract = contract.model_copy(update={"webhooks": Contract().webhooks})
        self.play = story


def _boundary(case: Case, facts: list[ProviderFact]) -> Boundary:
    return Boundary(
        case.contract,
        dialect=case.dialect,
        base_url=URL,
        random=Random(1),
        record=facts.append,
        webhook_secrets=[SECRET],
    )


async def _over_httpx(call_with: httpx2.AsyncClient, url: str, *args: Any) -> Seen:
    method, path, headers, *body = args
    answer = await call_with.request(method, f"{url}{path}", headers=headers, content=body[0] if body else None)
    assert int(answer.headers["Content-Length"]) == len(answer.content)
    # The socket's own: which server it was, what time it has, and the length of its URLs.
    kept = [(name, value.replace(url, URL)) for name, value in answer.headers.items() if name not in _SOCKETS_OWN]
    return answer.status_code, sorted(kept), answer.content.replace(url.encode(), URL.encode())


async def _core(case: Case) -> Run:
    facts: list[ProviderFact] = []
    clock, boundary = ManualClock(1_000.0), _boundary(case, facts)

    async def call(method: str, path: str, headers: dict[str, str], body: bytes = b"") -> Seen:
        name, _, query = path.partition("?")
        lowered = {key.lower(): value for key, value in headers.items()}
        request = Request(method=method, path=name, query=query, headers=lowered, body=body, base_url=URL)
        exchange = boundary.exchange(request, "w1", clock.now())
        send = next(exchange)
        assert isinstance(send, Send)
        assert send.answer is not None
        with pytest.raises(StopIteration):
            exchange.send(clock.now())
        kept = [(key.lower(), value) for key, value in send.answer.headers if key.lower() not in _SOCKETS_OWN]
        return send.answer.status, sorted(kept), send.answer.body

    return facts, await case.play(call, clock, boundary)


async def _in_process(case: Case) -> Run:
    facts: list[ProviderFact] = []
    clock, boundary = ManualClock(1_000.0), _boundary(case, facts)
    engine = Engine(boundary, clock, hosts=_Hosts(), deliver=_taken)
    engine.start()
    async with httpx2.AsyncClient(transport=InProcessTransport(engine, "w1"), trust_env=False) as client:

        async def call(*args: Any) -> Seen:
            return await _over_httpx(client, URL, *args)

        seen = await case.play(call, clock, boundary)
    await engine.close()
    return facts, seen


async def _on_a_socket(case: Case) -> Run:
    facts: list[ProviderFact] = []
    clock, boundary = ManualClock(1_000.0), _boundary(case, facts)
    engine = Engine(boundary, clock, hosts=_Hosts(), deliver=_taken)
    engine.start()
    server = Server(engine)
    url = await server.open_port("w1")
    async with httpx2.AsyncClient(trust_env=False) as client:

        async def call(*args: Any) -> Seen:
            return await _over_httpx(client, url, *args)

        seen = await case.play(call, clock, boundary)
    await server.close()
    await engine.close()
    return facts, seen


def _played(case: Case) -> tuple[list[ProviderFact], ManualClock, Engine]:
    facts: list[ProviderFact] = []
    clock = ManualClock(1_000.0)
    return facts, clock, Engine(_boundary(case, facts), clock, hosts=_Hosts(), deliver=_taken)


def _kept(answer: httpx.Response | httpx2.Response) -> Seen:
    kept = [(name, value) for name, value in answer.headers.items() if name not in _SOCKETS_OWN]
    return answer.status_code, sorted(kept), answer.content


async def _through_respx(case: Case, library: Library) -> Run:
    facts, clock, engine = _played(case)
    engine.start()
    with ProviderRouter(engine, using=library):
        async with (
            httpx.AsyncClient(trust_env=False) if library == "httpcore" else httpx2.AsyncClient(trust_env=False)
        ) as client:

            async def call(method: str, path: str, headers: dict[str, str], body: bytes | None = None) -> Seen:
                return _kept(await client.request(method, f"{URL}{path}", headers=headers, content=body))

            seen = await case.play(call, clock, engine.boundary)
    await engine.close()
    return facts, seen


def _through_respx_synchronously(case: Case, library: Library) -> Run:
    facts, clock, engine = _played(case)
    loop = asyncio.new_event_loop()

    async def start() -> None:
        engine.start()

    loop.run_until_complete(start())
    made = httpx.Client if library == "httpcore" else httpx2.Client
    with ProviderRouter(engine, using=library, wait=loop.run_until_complete), made(trust_env=False) as client:

        async def call(method: str, path: str, headers: dict[str, str], body: bytes | None = None) -> Seen:
            return _kept(client.request(method, f"{URL}{path}", headers=headers, content=body))

        story = case.play(call, clock, engine.boundary)
        with pytest.raises(StopIteration) as ended:  # it never waits: each call is at its end when it returns
            story.send(None)
    loop.run_until_complete(engine.close())
    loop.close()
    return facts, ended.value.value


CASES = [Case("jobs", contract, _story) for contract in PRESETS.values()]
CASES += [Case("openai-batch", DIALECTS["openai-batch"].likeness, _batches)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.contract.name)
def test_core_transport_respx_and_socket_are_the_same_provider(case: Case) -> None:
    facts, seen = asyncio.run(_core(case))
    assert len(seen) == 15
    assert len({status for status, _, _ in seen}) > 3, "well-behaved and not"
    assert asyncio.run(_in_process(case)) == (facts, seen)
    assert asyncio.run(_on_a_socket(case)) == (facts, seen)
    libraries: tuple[Library, ...] = ("httpcore", "httpcore2")
    for library in libraries:
        assert asyncio.run(_through_respx(case, library)) == (facts, seen), library
        assert _through_respx_synchronously(case, library) == (facts, seen), library
