"""docs/serve.md, as a reader does it: the server runs, curl calls it, and what the page shows comes; its limits are
those that hold.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fake_provider import answering, books, control, factlog, server, sessions, uploads, webhooks, wire, work
from fake_provider.faults import plan

PAGE = (Path(__file__).parents[2] / "docs" / "serve.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
PORTS = ("8801", "8802")


def shows(output: str, expected: str) -> bool:
    """Whether ``expected`` is all of ``output``; ``…`` stands for anything."""
    return bool(re.fullmatch(".*".join(map(re.escape, expected.strip().split("…"))), output.strip(), re.DOTALL))


def test_an_ellipsis_stands_for_anything_and_everything_else_for_itself() -> None:
    assert shows('{"a":1,"b":2}\n', '{"a":…2}')
    assert not shows('{"a":1,"b":2}', '{"a":1}')


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl here")
def test_every_command_does_what_the_page_says() -> None:
    (start, *middle, end) = BLOCKS
    program = [sys.executable, "-c", "from harness.cli import main; main()", "serve", "--quiet", "--judge"]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:  # noqa: S603
        try:
            assert running.stdout is not None
            lines = "".join(running.stdout.readline() for _ in range(3))
            ports = [re.findall(r"http://127\.0\.0\.1:([0-9]+)", line)[0] for line in lines.splitlines()[:2]]

            def here(text: str) -> str:
                for written, real in zip(PORTS, ports, strict=True):
                    text = text.replace(written, real)
                return text

            assert lines == here(start.partition("\n")[2])
            for step in "".join(middle).split("$ ")[1:]:
                command, _, shown = here(step).partition("\n")
                done = subprocess.run(  # noqa: S602  the commands are the page's own
                    command, shell=True, capture_output=True, text=True, timeout=20, check=False, env=_without_proxy()
                )
                assert shows(done.stdout, shown), f"{command}\nshows\n{done.stdout}{done.stderr}\nand not\n{shown}"
            running.send_signal(signal.SIGINT)
            out, err = running.communicate(timeout=20)
            assert (running.returncode, err) == (1, "")
            assert shows(out, here(end)), out
        finally:
            running.kill()


def _without_proxy() -> dict[str, str]:
    return {**os.environ, "no_proxy": "127.0.0.1"}


def test_the_limits_are_those_that_hold() -> None:
    rows = re.findall(r"^\| (.+?) \| (.+?) \| (.+?) \|$", PAGE.partition("## Limits")[2], re.MULTILINE)
    assert {what: figure for what, figure, _ in rows[1:]} == {
        "a request body": f"{wire.MAX_BODY_BYTES >> 20} MiB",
        "jobs in one session": f"{books.MAX_JOBS:,}",
        "sessions at one time": f"{sessions.MAX_SESSIONS:,}",
        "an unused session": f"{sessions.IDLE_S / 3600:.0f} hour",
        "facts in memory, a session": f"{factlog.KEPT_IN_MEMORY:,}",
        "facts in one answer": f"{control.MAX_PAGE:,}",
        "records in one result": f"{work.MAX_RECORDS:,}",
        "silence after a lost answer": f"{answering.MAX_SILENCE_S / 60:.0f} minutes",
        "moving the clock": f"{control.MAX_ADVANCE_S / 365 / 86_400:.0f} years at a time",
        "webhooks that wait in one session": f"{webhooks.MAX_HELD:,}",
        "faults in one session": f"{plan.MAX_FAULTS:,}",
        "uploaded documents in one session": f"{uploads.MAX_UPLOADED_BYTES >> 20} MiB",
        "a request under way when the server stops": f"{server.CLOSING_S * 1000:.0f} ms",
    }
