"""The tutorial, as a reader does it: files are written, commands are run, and what the page shows of their
output comes, in that order.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "tutorial.md"
STEP = re.compile(r"`(?P<name>[\w.]+)`:\n\n```\w+\n(?P<content>.*?)```|```console\n(?P<session>.*?)```", re.DOTALL)


def steps() -> Iterator[tuple[str, str]]:
    """A file with its content, or a command with what it shows, in the order of the page."""
    for step in STEP.finditer(PAGE.read_text(encoding="utf-8")):
        if step["session"] is None:
            yield step["name"], step["content"]
            continue
        for command in step["session"].split("$ ")[1:]:
            line, _, shown = command.partition("\n")
            yield f"$ {line}", shown


def shows(output: str, expected: str) -> bool:
    """Whether the lines of ``expected`` come in ``output`` in this order; ``…`` stands for anything within a line."""
    lines = iter(output.splitlines())
    for wanted in expected.splitlines():
        pattern = re.compile(".*".join(re.escape(part.strip()) for part in wanted.split("…")))
        if not any(pattern.search(line) for line in lines):
            return False
    return True


def test_the_page_is_read_as_it_is_meant() -> None:
    names = [name for name, _ in steps()]
    assert names[:2] == ["$ jobsworth --version", "client.py"]
    assert names.count("client.py") == 2
    assert len(names) == 11


def test_anything_may_stand_for_an_ellipsis_and_lines_come_in_order() -> None:
    assert shows("a 1 b\nx\nc", "a … b\nc")
    assert not shows("c\na 1 b", "a … b\nc")
    assert not shows("a 1 b", "a … b\nc")


def test_every_step_does_what_the_page_says(tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    code = 0
    for name, content in steps():
        if not name.startswith("$ "):
            (tmp_path / name).write_text(content, encoding="utf-8")
        elif name == "$ echo $?":
            assert content.strip() == str(code)
        else:
            done = subprocess.run(  # noqa: S602  the commands are the page's own
                name.removeprefix("$ "),
                shell=True,
                cwd=tmp_path,
                env={**os.environ, "PATH": path, "GITHUB_ACTIONS": ""},
                capture_output=True,
                text=True,
                check=False,
            )
            code = done.returncode
            if not shows(done.stdout, content):
                pytest.fail(f"{name}\nshows\n{done.stdout}{done.stderr}\nand not\n{content}", pytrace=False)
