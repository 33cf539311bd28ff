"""What both APIs say of themselves is what they do: schemathesis calls them by their documents, rightly and wrongly,
and gets no server error and no answer that is not described.
"""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import httpx2
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
)
TERMS = ({"contract": "careful"}, {"contract": "aip-like"}, {"contract": "azure-like"}, {"dialect": "openai-batch"})
SETTINGS = """
[parameters]
session = "default"
operation = "op-1"
"""
SERVER = """
import asyncio
from fake_provider.sessions import SessionTerms
from fake_provider.standalone import Standalone
async def main():
    async with Standalone(SessionTerms()) as served:
        print(served.control_url, flush=True)
        await asyncio.Event().wait()
asyncio.run(main())
"""


@pytest.fixture(scope="module")
def control_url() -> Iterator[str]:
    with subprocess.Popen(  # noqa: S603  this interpreter, the text above
        [sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout is not None
            yield server.stdout.readline().strip()
        finally:
            server.kill()


def hold_to(document: str, folder: Path, *more: str) -> None:
    """Call an API by its document, every kind of call, for some seconds."""
    (folder / "schemathesis.toml").write_text(SETTINGS, encoding="utf-8")
    done = subprocess.run(  # noqa: S603
        [
            *(sys.executable, "-m", "schemathesis.cli", "--config-file", "schemathesis.toml", "run", document),
            *("--checks", ",".join(CHECKS), "--phases", "examples,coverage,fuzzing", "--max-examples", "3"),
            "--generation-deterministic",
            *("--header", "Authorization:Bearer x", "--request-timeout", "10", "--no-color", "--warnings", "off"),
            *more,
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6_000:] + done.stderr[-2_000:]


def test_the_control_api_is_as_it_says(control_url: str, tmp_path: Path) -> None:
    # The stream has no end, so a caller that waits for one would time out.
    hold_to(f"{control_url}/openapi.json", tmp_path, "--exclude-path", "/sessions/{session}/history/stream")
    assert len(httpx2.get(f"{control_url}/sessions", trust_env=False).json()["sessions"]) > 1, "some calls were right"


@pytest.mark.parametrize("terms", TERMS, ids=lambda terms: str(*terms.values()))
def test_the_provider_is_as_it_says(terms: dict[str, str], control_url: str, tmp_path: Path) -> None:
    opened = httpx2.post(f"{control_url}/sessions", json=terms, trust_env=False).json()
    document = f"{control_url}/sessions/{opened['name']}/openapi.json"
    hold_to(document, tmp_path, "--url", opened["base_url"])
    entries = httpx2.get(f"{control_url}/sessions/{opened['name']}/history", trust_env=False).json()["entries"]
    assert any(entry["fact"].get("status", 500) < 300 for entry in entries), "some calls were right"
