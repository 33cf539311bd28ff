"""The import contracts bite: a line in the wrong direction makes them fail."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("fake_provider", "harness", "reference_client", "scenarios")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The packages and their contracts, to be broken."""
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def lint(folder: Path) -> tuple[int, str]:
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as main; main()", "--no-cache"]
    # The copy must be what is imported, not the packages as installed.
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    return done.returncode, done.stdout + done.stderr


def test_the_contracts_hold(copy: Path) -> None:
    status, said = lint(copy)
    assert status == 0, said
    assert "0 broken" in said


@pytest.mark.parametrize(
    ("module", "line", "broken"),
    [
        ("reference_client/polling.py", "import fake_provider.clock", "imports go one way"),
        ("fake_provider/calls.py", "import harness.verdict", "imports go one way"),
        ("reference_client/workflow.py", "import time", "the reference client decides purely"),
        ("fake_provider/provider.py", "import random", "the provider's core is pure"),
        ("harness/verdict.py", "import asyncio", "judging is pure"),
        ("fake_provider/mailroom.py", "import asyncio", "the provider's core is pure"),
        ("harness/course.py", "import reference_client.polling", "in two rooms only"),
        ("fake_provider/facts.py", "import fake_provider.calls", "the fake provider in its layers"),
        ("reference_client/clock.py", "import reference_client.story", "the reference client in its layers"),
        ("harness/verdict.py", "import harness.stage", "the harness in its layers"),
    ],
)
def test_a_line_in_the_wrong_direction_breaks_them(copy: Path, module: str, line: str, broken: str) -> None:
    path = copy / module
    path.write_text(f"{path.read_text()}\n{line}\n")
    status, said = lint(copy)
    assert status == 1
    broken_contracts = " ".join(said.split("Broken contracts")[-1].split())
    assert broken in broken_contracts, said


@pytest.mark.parametrize("package", ["fake_provider", "reference_client", "harness"])
def test_a_new_module_must_be_given_its_place(copy: Path, package: str) -> None:
    (copy / package / "newcomer.py").touch()
    status, said = lint(copy)
    assert status == 1
    assert "newcomer" in said
