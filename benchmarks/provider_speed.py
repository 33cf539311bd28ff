"""How fast the fake provider is, as ratios in one run: on a socket beside a bare aiohttp handler that returns constant
JSON, in process beside a transport that returns constant JSON; and what a finished job costs in memory.

    python benchmarks/provider_speed.py            all of it, some ten seconds
    python benchmarks/provider_speed.py --jobs 500 less of it
"""

import argparse
import asyncio
import gc
import json
import subprocess
import sys
import time
import tracemalloc
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from random import Random
from statistics import median
from typing import Any

import httpx2
from aiohttp import web

from fake_provider.boundary import Boundary
from fake_provider.clock import ManualClock
from fake_provider.contract import Contract
from fake_provider.engine import Attempt, Engine
from fake_provider.facts import ProviderFact
from fake_provider.sessions import SessionTerms
from fake_provider.standalone import Standalone
from fake_provider.transport import InProcessTransport

POLLS = 3  # status reads after each create
CONNECTIONS = 8
TURNS = 10  # in which bare and fake are measured, so that what else the machine does hinders both alike
JOB = json.dumps(
    {
        "id": "job_0123456789abcdef",
        "status": "queued",
        "progress": 0,
        "client_reference": "op-1",
        "created_at": "2026-01-01T00:00:00.000Z",
        "updated_at": "2026-01-01T00:00:00.000Z",
        "result": None,
        "error": None,
    }
).encode()


class Constant(httpx2.AsyncBaseTransport):
    """The least that a transport can do."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        await request.aread()
        return httpx2.Response(200, headers=[("Content-Type", "application/json")], content=JOB, request=request)


class NoHosts:
    def kill(self, worker: str) -> None: ...

    def stop(self, worker: str, for_s: float | None) -> None: ...

    def set_clock(self, worker: str, ahead_s: float) -> None: ...

    def is_running(self, worker: str) -> bool:  # noqa: ARG002
        return True


async def nobody(attempt: Attempt) -> int | None:  # noqa: ARG001
    return None


def _forget(fact: ProviderFact) -> None:
    """Keep no history."""


# -- on a socket: the server in one process, the load in this one


async def serve_bare() -> None:
    async def answer(request: web.BaseRequest) -> web.Response:
        await request.read()
        return web.Response(body=JOB, content_type="application/json")

    runner = web.ServerRunner(web.Server(answer, access_log=None))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


async def serve_fake() -> None:
    async with Standalone(SessionTerms()) as served:
        print(served.base_url.rsplit(":", 1)[1], flush=True)
        await asyncio.Event().wait()


@contextmanager
def serving(what: str) -> Iterator[int]:
    with subprocess.Popen([sys.executable, __file__, "--serve", what], stdout=subprocess.PIPE, text=True) as program:  # noqa: S603
        assert program.stdout is not None
        try:
            yield int(program.stdout.readline())
        finally:
            program.kill()


def wire(method: str, path: str, extra: str = "", body: bytes = b"") -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer x\r\n{extra}"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> Any:
    writer.write(request)
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = int(head.split(b"content-length: ", 1)[1].split(b"\r\n", 1)[0])
    return json.loads(await reader.readexactly(length))


async def load(port: int, jobs: int) -> float:
    """Create and poll over several connections; return requests a second."""
    numbers = iter(range(jobs))

    async def one_connection() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for number in numbers:
            body = b'{"kind":"report","client_reference":"op-%d","parameters":{}}' % number
            created = await exchange(reader, writer, wire("POST", "/v1/jobs", f"Idempotency-Key: k-{number}\r\n", body))
            for _ in range(POLLS):
                await exchange(reader, writer, wire("GET", f"/v1/jobs/{created['id']}"))
        writer.close()

    started = time.perf_counter()
    await asyncio.gather(*(one_connection() for _ in range(CONNECTIONS)))
    return jobs * (1 + POLLS) / (time.perf_counter() - started)


def on_a_socket(jobs: int) -> tuple[float, float]:
    """Return requests a second: bare, fake. The median of many short runs in turn, after one each to warm up."""
    with serving("bare") as bare, serving("fake") as fake:
        for port in (bare, fake):
            asyncio.run(load(port, jobs // 10))
        rates = [[asyncio.run(load(port, jobs // TURNS)) for port in (bare, fake)] for _ in range(2 * TURNS)]
        return median(rate for rate, _ in rates), median(rate for _, rate in rates)


# -- in process


async def clients(facts: list[Any]) -> AsyncIterator[httpx2.AsyncClient]:
    boundary = Boundary(Contract(), base_url="http://provider.test", random=Random(1), record=facts.append)
    engine = Engine(boundary, ManualClock(), hosts=NoHosts(), deliver=nobody)
    engine.start()
    for transport in (Constant(), InProcessTransport(engine, "w1")) * 2:
        async with httpx2.AsyncClient(transport=transport, base_url="http://provider.test", trust_env=False) as client:
            client.headers["Authorization"] = "Bearer x"
            yield client
    await engine.close()


async def in_process(jobs: int) -> tuple[float, float]:
    """Return exchanges a second: constant, fake. The better of two runs each, in turn."""
    best = [0.0, 0.0]
    turn = 0
    async for client in clients([]):
        started = time.perf_counter()
        for number in range(jobs):
            body = {"kind": "report", "client_reference": f"op-{number}", "parameters": {}}
            key = {"Idempotency-Key": f"k-{turn}-{number}"}
            job = (await client.post("/v1/jobs", json=body, headers=key)).json()["id"]
            for _ in range(POLLS):
                await client.get(f"/v1/jobs/{job}")
        best[turn % 2] = max(best[turn % 2], jobs * (1 + POLLS) / (time.perf_counter() - started))
        turn += 1
    return best[0], best[1]


async def memory(jobs: int) -> float:
    """Return the bytes that a finished job keeps, its history apart."""
    clock = ManualClock()
    boundary = Boundary(Contract(), base_url="http://provider.test", random=Random(1), record=_forget)
    engine = Engine(boundary, clock, hosts=NoHosts(), deliver=nobody)
    engine.start()
    transport = InProcessTransport(engine, "w1")
    async with httpx2.AsyncClient(transport=transport, base_url="http://provider.test", trust_env=False) as client:
        client.headers["Authorization"] = "Bearer x"
        tracemalloc.start()
        before = 0
        for number in range(2 * jobs):
            if number == jobs:
                clock.advance(10)
                boundary.ledger(clock.now())
                gc.collect()
                before = tracemalloc.get_traced_memory()[0]
            body = {"kind": "report", "client_reference": f"op-{number}", "parameters": {}}
            await client.post("/v1/jobs", json=body, headers={"Idempotency-Key": f"k-{number}"})
        clock.advance(10)
        boundary.ledger(clock.now())
        gc.collect()
        kept = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
    await engine.close()
    return kept / jobs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1_500)
    parser.add_argument("--serve", choices=["bare", "fake"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve_bare() if options.serve == "bare" else serve_fake())
        return
    print(f"{'what':<46} {'baseline/s':>11} {'fake/s':>9} {'ratio':>6}  aim")
    rows = (
        ("on a socket, create + poll, history on", on_a_socket(options.jobs), "1/2"),
        ("in process, create + poll, history on", asyncio.run(in_process(options.jobs)), "1/3"),
    )
    for what, (baseline, fake), aim in rows:
        print(f"{what:<46} {baseline:>11.0f} {fake:>9.0f} {fake / baseline:>6.2f}  {aim}")
    print(f"{'memory of a finished job, its history apart':<46} {asyncio.run(memory(options.jobs)):>11.0f} bytes")


if __name__ == "__main__":
    main()
