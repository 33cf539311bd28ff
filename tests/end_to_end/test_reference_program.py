"""The reference client's program, as a person uses it: real processes, a provider on a socket, a file on disk."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

LIMIT_S = 60

Program = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def provider() -> Iterator[str]:
    """A fake provider; yields its base URL."""
    with subprocess.Popen([sys.executable, "-m", "harness", "serve"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[0]
        yield url
        process.terminate()
        process.communicate(timeout=LIMIT_S)


@pytest.fixture
def environment(tmp_path: Path, provider: str) -> dict[str, str]:
    settings = {
        "base_url": provider,
        "credential": "env:JOBS_AUTH",
        "store": str(tmp_path / "operations.sqlite"),
        "timing": {"request_timeout_s": 5, "poll_first_s": 0.2, "poll_cap_s": 1, "lease_s": 10},
    }
    path = tmp_path / "settings.json"
    path.write_text(json.dumps(settings))
    return os.environ | {"REFERENCE_CLIENT_SETTINGS": str(path), "JOBS_AUTH": "Bearer canary-1234"}


@pytest.fixture
def program(environment: dict[str, str]) -> Program:
    def run(*words: str, body: str = "") -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "reference_client", *words]
        return subprocess.run(  # noqa: S603  our own program
            command, input=body, env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False
        )

    return run


def test_an_operation_goes_from_submission_to_a_verified_trail(program: Program) -> None:
    """The whole story with one command each."""
    assert program("submit", "op-1", "--authorised-by", "ann", body='{"kind":"report"}').returncode == 0
    worked = program("work", "--until-rest")
    assert (worked.returncode, worked.stdout) == (0, "op-1: succeeded\n"), worked.stderr
    story = program("show", "op-1").stdout
    assert "retrieved and validated: 3 records, 0 failed" in story
    head = program("audit", "head").stdout.strip()
    assert program("audit", "verify", "--anchor", head).returncode == 0
    assert "canary" not in story + worked.stderr


def test_a_service_ends_in_good_order_when_told_to(program: Program, environment: dict[str, str]) -> None:
    """SIGTERM lets the worker finish what it has in hand, and no lease is left behind."""
    program("submit", "op-2", "--authorised-by", "ann", body='{"kind":"report"}')
    command = [sys.executable, "-m", "reference_client", "work"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:  # noqa: S603
        told = (program("show", "op-2").stdout for _ in range(LIMIT_S))
        assert any("accepted" in story for story in told)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=LIMIT_S)
    assert (process.returncode, errors) == (0, "")
    assert program("work", "--until-rest").stdout == "op-2: succeeded\n", "another process carries on at once"
