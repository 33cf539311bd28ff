"""Equal seeds give equal histories, to the byte, whatever the process or its hash seed."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from tests.fake_provider.conftest import Jobs, Play, World

FAULTS = (
    {"kind": "request_duplicated", "at": "create#1:received"},
    {"kind": "webhook_twice", "at": "webhook#1:delivered"},
    {"kind": "retry_after", "at": "status#*:committed", "form": "http_date"},
)
HOOKS = {"webhooks": {"enabled": True}, "result": {"kind": "signed_url"}}

ELSEWHERE = """
from random import Random
import hashlib, msgspec
from fake_provider.boundary import Boundary
from fake_provider.contract import Contract
from fake_provider.wire import Request
facts = []
boundary = Boundary(Contract(), base_url="http://provider.test", random=Random(7), record=facts.append)
for number in range(50):
    body = b'{"kind": "x", "client_reference": "op-%d", "parameters": {"b": 1, "a": [1, 2]}}' % (number % 10)
    headers = {"authorization": "Bearer x", "idempotency-key": f"k-{number % 10}"}
    request = Request(method="POST", path="/v1/jobs", query="", headers=headers, body=body, base_url="http://provider.test")
    exchange = boundary.exchange(request, f"w{number % 3}", float(number))
    effect = next(exchange)
    facts.append(effect.answer)
    for _ in exchange: pass
print(hashlib.sha256(msgspec.json.encode(facts)).hexdigest())
"""


async def _some_jobs(world: World, jobs: Jobs) -> None:
    for number in range(5):
        job = await jobs.created(f"op-{number}", key=f"key-{number}")
        await jobs.status(job)
        await asyncio.sleep(0.7)
    await asyncio.sleep(10)


def _bytes(world: World) -> bytes:
    return msgspec.json.encode(list(zip(world.times, world.facts, strict=True)))


def test_equal_seeds_give_equal_histories_and_other_seeds_give_others(play: Play) -> None:
    first, second = (play(_some_jobs, *FAULTS, contract=HOOKS) for _ in range(2))
    other = play(_some_jobs, *FAULTS, contract=HOOKS, seed=2)
    assert _bytes(first) == _bytes(second)
    assert [attempt.headers for _, attempt in first.received] == [attempt.headers for _, attempt in second.received]
    assert _bytes(other) != _bytes(first)
    assert len(first.struck) > len(FAULTS)


def test_the_hash_seed_makes_no_difference() -> None:
    digests = {
        subprocess.run(  # noqa: S603  this interpreter, the text above
            [sys.executable, "-c", ELSEWHERE],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
        ).stdout
        for seed in ("0", "1", "4242")
    }
    assert len(digests) == 1
