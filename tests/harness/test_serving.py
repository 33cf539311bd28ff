"""The fake provider by itself, as a program on a real socket."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

PROGRAM = [sys.executable, "-c", "from harness.cli import main; main()", "serve"]


@contextmanager
def serving(*args: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start the program; give it and its base URL."""
    with subprocess.Popen(  # noqa: S603
        [*PROGRAM, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as program:
        try:
            assert program.stdout is not None
            yield program, program.stdout.readline().split()[0]
        finally:
            program.kill()


def create(base_url: str) -> int:
    url = urlsplit(base_url)
    connection = HTTPConnection(str(url.hostname), url.port, timeout=10)
    headers = {"Authorization": "Bearer x", "Idempotency-Key": '"k1"', "Content-Type": "application/json"}
    body = json.dumps({"kind": "report", "client_reference": "op-1", "parameters": {}})
    connection.request("POST", "/v1/jobs", body, headers)
    status = connection.getresponse().status
    connection.close()
    return status


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_told_to_stop_and_ends_in_good_order(number: signal.Signals) -> None:
    with serving() as (program, base_url):
        assert create(base_url) == 202
        program.send_signal(number)
        out, err = program.communicate(timeout=10)
        assert (program.returncode, err) == (0, "")
        assert "takes the create of op-1 as job_" in out


def test_it_plays_the_faults_of_a_scenario() -> None:
    with serving("--scenario", "provider-down-for-a-while") as (program, base_url):
        assert create(base_url) == 503
        program.send_signal(signal.SIGTERM)
        out, _ = program.communicate(timeout=10)
        assert "server_error strikes at create#*:received" in out


def test_it_plays_a_contract_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("name: mine\ncreate_answer: created_201\n", encoding="utf-8")
    with serving("--contract", str(path)) as (_, base_url):
        assert create(base_url) == 201


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (["--dialect", "jbos"], "--dialect jbos: there is none; one of jobs"),
        (["--contract", "carefull"], "did you mean 'careful'?"),
        (["--scenario", "stale-lease"], "faults[0]: stop strikes at the client's host, which is out of reach here"),
    ],
)
def test_wrong_use_ends_with_2_and_says_what_is_wrong(args: list[str], complaint: str) -> None:
    done = subprocess.run([*PROGRAM, *args], capture_output=True, text=True, timeout=30, check=False)  # noqa: S603
    assert done.returncode == 2
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr
