"""The fake provider by itself, as a program on real sockets."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

PROGRAM = [sys.executable, "-c", "from harness.cli import main; main()", "serve"]
HEADERS = {
    "Authorization": "Bearer x",
    "Content-Type": "application/json",
    "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
}


class Served:
    """A running program, and where it says that it is to be reached."""

    def __init__(self, program: "subprocess.Popen[str]") -> None:
        assert program.stdout is not None
        self.program = program
        self.lines = [program.stdout.readline() for _ in range(3)]
        self.base_url = self.lines[0].split()[0]
        self.control_url = self.lines[1].split()[0]

    def stop(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """Return the exit status and what else it wrote; nothing of that is on standard error."""
        self.program.send_signal(number)
        out, err = self.program.communicate(timeout=20)
        assert err == ""
        return self.program.returncode, out

    def control(self, method: str, path: str, body: Any = None) -> Any:
        return call(self.control_url, method, path, json.dumps(body) if body is not None else None)[1]


@contextmanager
def serving(*args: str) -> Iterator[Served]:
    with subprocess.Popen(  # noqa: S603
        [*PROGRAM, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as program:
        try:
            yield Served(program)
        finally:
            program.kill()


def call(base_url: str, method: str, path: str, body: str | None = None, **headers: str) -> tuple[int, Any]:
    url = urlsplit(base_url)
    connection = HTTPConnection(str(url.hostname), url.port, timeout=10)
    connection.request(method, f"{url.path}{path}", body, {**HEADERS, **headers})
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.status, json.loads(text) if text else None


def create(base_url: str, *, key: str = "7c1e6f0a5d2b4983a1f0c6d7e8b95a34", operation: str = "op-1") -> int:
    body = json.dumps({"kind": "report", "client_reference": operation, "parameters": {}})
    return call(base_url, "POST", "/v1/jobs", body, **{"Idempotency-Key": f'"{key}"'})[0]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_told_to_stop_and_ends_in_good_order(number: signal.Signals) -> None:
    with serving() as served:
        assert create(served.base_url) == 202
        code, out = served.stop(number)
        assert code == 0
        assert "takes the create of op-1 as job_" in out


def test_it_stops_though_clients_hold_connections_and_streams_open() -> None:
    with serving("--quiet") as served:
        url = urlsplit(served.control_url)
        with (
            socket.create_connection((str(url.hostname), url.port), timeout=10) as stream,
            socket.create_connection((str(url.hostname), urlsplit(served.base_url).port), timeout=10) as idle,
        ):
            stream.sendall(b"GET /sessions/default/history/stream HTTP/1.1\r\nHost: x\r\n\r\n")
            assert stream.recv(12) == b"HTTP/1.1 200"
            idle.sendall(b"POST /v1/jobs HTTP/1.1\r\n")
            assert served.stop() == (0, "")


def test_it_says_how_to_reach_everything() -> None:
    with serving() as served:
        assert served.lines[0].endswith("speaks jobs, contract careful, 0 faults\n")
        assert "is the control API, described at" in served.lines[1]
        assert served.control("GET", "/openapi.json")["servers"] == [{"url": served.control_url}]
        opened = served.control("POST", "/sessions", {"name": "mine"})
        assert opened["base_url"] == served.lines[2].split(",")[0].replace("NAME", "mine")
        assert create(opened["base_url"]) == 202
        _, out = served.stop()
        assert "mine: provider  takes the create of op-1" in out


def test_it_plays_the_faults_of_a_scenario() -> None:
    with serving("--scenario", "provider-down-for-a-while") as served:
        assert create(served.base_url) == 503
        assert "server_error strikes at create#*:received" in served.stop()[1]


def test_it_plays_a_contract_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("name: mine\ncreate_answer: created_201\n", encoding="utf-8")
    with serving("--contract", str(path)) as served:
        assert create(served.base_url) == 201


def test_its_clock_may_be_moved_by_hand() -> None:
    with serving("--clock", "manual") as served:
        assert create(served.base_url) == 202
        served.control("POST", "/sessions/default/clock", {"advance_s": 3})
        (job,) = served.control("GET", "/sessions/default/ledger")["jobs"]
        assert job["state"] == "succeeded"


def test_a_client_that_breaks_a_rule_is_told_of_with_its_session_and_the_proof() -> None:
    with serving("--judge", "--quiet") as served:
        base_url = served.control("POST", "/sessions", {"name": "careless-test"})["base_url"]
        assert create(base_url) == create(base_url, key="1bf7651916cd43dd8448eb211c80319c") == 202
        assert create(served.base_url, key="2cf7651916cd43dd8448eb211c80319c") == 202
        code, out = served.stop()
        assert code == 1
        assert "one-job-per-operation (W1.1)" in out
        assert "takes the create of op-1 as job_" in out, "the facts that prove it"
        assert "session default: no findings" in out
        assert out.splitlines()[-1] == "fail: 1 of 2 sessions broke a rule: careless-test"


def test_a_session_that_was_deleted_or_begun_anew_is_judged_too() -> None:
    with serving("--judge", "--quiet") as served:
        for name in ("gone", "anew"):
            base_url = served.control("POST", "/sessions", {"name": name})["base_url"]
            create(base_url)
            create(base_url, key="1bf7651916cd43dd8448eb211c80319c")
        served.control("DELETE", "/sessions/gone")
        served.control("POST", "/sessions/anew/reset")
        code, out = served.stop()
        assert (code, out.splitlines()[-1]) == (1, "fail: 2 of 2 sessions broke a rule: gone, anew")


def test_a_client_that_breaks_none_passes() -> None:
    with serving("--judge", "--quiet") as served:
        create(served.base_url)
        code, out = served.stop()
        assert code == 0
        assert out.splitlines()[-1].startswith("pass: 1 sessions, ")


def test_where_nobody_called_nothing_is_proved() -> None:
    with serving("--judge", "--quiet") as served:
        assert served.stop() == (3, "unknown: no rule had anything to judge\n")


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (["--dialect", "jbos"], "--dialect: there is no dialect 'jbos'; one of jobs"),
        (["--contract", "carefull"], "did you mean 'careful'?"),
        (["--scenario", "stale-lease"], "faults[0]: stop strikes at the client's host, out of reach here"),
        (["--webhook-url", "nowhere"], "--webhook-url: "),
    ],
)
def test_wrong_use_ends_with_2_and_says_what_is_wrong(args: list[str], complaint: str) -> None:
    done = subprocess.run([*PROGRAM, *args], capture_output=True, text=True, timeout=30, check=False)  # noqa: S603
    assert done.returncode == 2
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("option", ["--port", "--control-port"])
def test_a_port_that_is_taken_is_wrong_use(option: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = subprocess.run(  # noqa: S603
            [*PROGRAM, option, port], capture_output=True, text=True, timeout=30, check=False
        )
    assert (done.returncode, done.stdout) == (2, "")
    assert os.strerror(98 if sys.platform == "linux" else 48).lower() in done.stderr.lower()
