"""What a client gone wild sends at both doors: it is refused in plain words, and the next request is answered."""

from __future__ import annotations

import asyncio
import json
import resource
import socket
import struct
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final

import httpx2
import pytest

from fake_provider.sessions import SessionTerms
from fake_provider.standalone import Standalone
from fake_provider.wire import MAX_BODY_BYTES

CREATE = {"kind": "report", "client_reference": "op-1"}
KEYED = {"Authorization": "Bearer x", "Idempotency-Key": "k"}
HALF_OPEN: Final = 10_000
OWN_FILES: Final = 200
"""Files that a process here has open besides."""

RESET_ON_CLOSE = struct.pack("ii", 1, 0)
DOORS = ("provider", "control")
SERVER = """
import asyncio
from fake_provider.sessions import SessionTerms
from fake_provider.standalone import Standalone
async def main():
    async with Standalone(SessionTerms()) as served:
        print(served.base_url.rsplit(":", 1)[1], served.control_url.rsplit(":", 1)[1], flush=True)
        await asyncio.Event().wait()
asyncio.run(main())
"""


class Doors:
    """Both ports of one server."""

    def __init__(self, served: Standalone) -> None:
        self._ports = {"provider": served.base_url, "control": served.control_url}

    async def raw(self, door: str, request: bytes) -> bytes:
        """Send bytes and nothing more; return what comes until the server hangs up."""
        host, port = self._ports[door].removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        try:
            writer.write(request)
            writer.write_eof()
            async with asyncio.timeout(10):
                return await reader.read(-1)
        except ConnectionError:
            return b""
        finally:
            writer.close()

    async def still_answer(self) -> None:
        async with httpx2.AsyncClient(headers=KEYED, trust_env=False, timeout=10) as client:
            assert (await client.post(f"{self._ports['provider']}/v1/jobs", json=CREATE)).status_code == 202
            assert (await client.get(f"{self._ports['control']}/sessions")).status_code == 200


@asynccontextmanager
async def _serving() -> AsyncIterator[Doors]:
    async with Standalone(SessionTerms()) as served:
        yield Doors(served)


def _request(*lines: bytes, body: bytes = b"", method: bytes = b"POST", path: bytes = b"/v1/jobs") -> bytes:
    head = (method + b" " + path + b" HTTP/1.1", b"Host: x", b"Authorization: Bearer x", *lines)
    return b"\r\n".join(head) + b"\r\nConnection: close\r\n\r\n" + body


SOUP = {
    "no HTTP at all": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256)) * 4,
    "a version of its own": b"GET / HTTP/9.9\r\n\r\n",
    "a negative length": _request(b"Content-Length: -1"),
    "two lengths": _request(b"Content-Length: 5", b"Content-Length: 6", body=b"{}    "),
    "a length and chunks": _request(b"Content-Length: 5", b"Transfer-Encoding: chunked", body=b"0\r\n\r\n"),
    "bad chunks": _request(b"Transfer-Encoding: chunked", body=b"zz\r\n"),
    "an endless line": b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\n\r\n",
    "an endless header": _request(b"X: " + b"y" * 200_000),
    "headers without end": _request(*(b"X-%d: y" % number for number in range(20_000))),
    "a header without a name": _request(b": y"),
    "a header with a zero byte": _request(b"X: a\x00b"),
    "a header that is folded": _request(b"X: a\r\n b"),
    "a host that is none": b'GET /v1/jobs/x HTTP/1.1\r\nHost: a b"><script>\r\nConnection: close\r\n\r\n',
    "a path of percent signs": _request(method=b"GET", path=b"/v1/jobs/%%%00%ff%zz?%=%&&=;"),
    "a path out of the tree": _request(method=b"GET", path=b"/s/../../sessions/..%2f..%2f/v1/jobs"),
    "an empty path": _request(method=b"GET", path=b"*"),
    "a method of its own": _request(method=b"BREW"),
    "an upgrade": _request(b"Upgrade: websocket", b"Connection: Upgrade", method=b"GET"),
    "half a body": _request(b"Content-Length: 500", body=b'{"kind": '),
    "a body of other letters": _request(b"Content-Length: 4", b"Idempotency-Key: k", body=b"\xff\xfe\x00\x01"),
    "a body of brackets": _request(b"Content-Length: 100000", b"Idempotency-Key: k", body=b"[" * 100_000),
    "a number without end": _request(
        b"Content-Length: 50011", b"Idempotency-Key: k", body=b'{"kind":1%s}' % (b"0" * 50_002)
    ),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("soup", list(SOUP.values()), ids=list(SOUP))
def test_soup_is_refused_in_plain_words_and_the_next_request_is_answered(
    soup: bytes, door: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        async with _serving() as doors:
            answer = await doors.raw(door, soup)
            head, _, body = answer.partition(b"\r\n\r\n")
            if answer:
                assert head[:10] in {b"HTTP/1.1 4", b"HTTP/1.0 4"}, answer
                if b"application/problem+json" in head:
                    told: dict[str, Any] = json.loads(body)
                    assert str(told["status"]).encode() == head[9:12]
                    assert told["detail"]
                else:
                    assert body.strip(), "a clear line"
                assert b"Traceback" not in body
            await doors.still_answer()

    asyncio.run(story())
    assert caplog.text == ""


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("length", [MAX_BODY_BYTES + 1, 3 * MAX_BODY_BYTES])
@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_too_large_is_413_and_the_next_request_is_answered(door: str, length: int, *, chunked: bool) -> None:
    path = b"/v1/jobs" if door == "provider" else b"/sessions"
    body = b" " * length

    async def story() -> None:
        async with _serving() as doors:
            lines = [b"Transfer-Encoding: chunked"] if chunked else [b"Content-Length: %d" % length]
            wire = b"%x\r\n%s\r\n0\r\n\r\n" % (length, body) if chunked else body
            answer = await doors.raw(door, _request(*lines, path=path, body=wire))
            assert answer.startswith(b"HTTP/1.1 413"), answer[:200]
            assert b"application/problem+json" in answer
            await doors.still_answer()

    asyncio.run(story())


@contextmanager
def _many_files() -> Iterator[int]:
    """Let this process and its children open as many files as the system allows; yield how many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = min(HALF_OPEN + OWN_FILES, hard) if hard != resource.RLIM_INFINITY else HALF_OPEN + OWN_FILES
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, allowed), hard))
    try:
        yield max(soft, allowed)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_ten_thousand_half_open_connections_hinder_nobody() -> None:
    with (
        _many_files() as allowed,
        subprocess.Popen(  # noqa: S603
            [sys.executable, "-c", SERVER], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as server,
    ):
        try:
            assert server.stdout is not None
            port, control_port = map(int, server.stdout.readline().split())
            at_once = min(HALF_OPEN, allowed - OWN_FILES)
            opened = 0
            while opened < HALF_OPEN:
                wave = [_half_open(port, number) for number in range(min(at_once, HALF_OPEN - opened))]
                opened += len(wave)
                assert _asked(port, "POST", "/v1/jobs", json.dumps(CREATE)) == 202
                for number, each in enumerate(wave):
                    if number % 2:  # half of them end with a reset
                        each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
                    each.close()
            assert _asked(port, "POST", "/v1/jobs", json.dumps(CREATE)) == 202
            assert _asked(control_port, "GET", "/sessions") == 200
        finally:
            server.terminate()
            _, complaints = server.communicate(timeout=10)
    assert complaints == ""


def _half_open(port: int, number: int) -> socket.socket:
    """A connection that has said nothing, or half a head, or half a body."""
    said = (b"", b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\n", _request(b"Content-Length: 50", body=b'{"kind"'))[number % 3]
    connection = socket.create_connection(("127.0.0.1", port), timeout=20)
    connection.sendall(said)
    return connection


def _asked(port: int, method: str, path: str, body: str | None = None) -> int:
    with httpx2.Client(base_url=f"http://127.0.0.1:{port}", headers=KEYED, trust_env=False, timeout=20) as client:
        return client.request(method, path, content=body).status_code
