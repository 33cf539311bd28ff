"""Each broken client is caught by the rule it is named for, and by no rule that does not apply."""

import importlib
from pathlib import Path
from types import ModuleType

import pytest

from harness.runner import run
from harness.subjects import Subject, resolve
from harness.verdict import Verdict
from scenarios.loading import find

FOLDER = Path(__file__).parent.parent / "broken_clients"
NAMES = sorted(path.stem for path in FOLDER.glob("*.py") if not path.stem.startswith("_"))


def module(name: str) -> ModuleType:
    return importlib.import_module(f"tests.broken_clients.{name}")


def subject(name: str) -> Subject:
    return resolve(f"tests.broken_clients.{name}:build")


def test_there_are_broken_clients() -> None:
    assert len(NAMES) >= 6


@pytest.mark.parametrize("name", NAMES)
def test_it_is_caught_by_the_rule_it_is_named_for(name: str) -> None:
    broken = module(name)
    result = run(find(broken.SCENARIO), subject(name))
    caught = {finding.rule for finding in result.outcome.findings}
    assert result.outcome.verdict is Verdict.FAIL
    assert broken.CAUGHT_BY in caught
    assert caught <= {broken.CAUGHT_BY, "scenario-expectation", *getattr(broken, "ALSO_CAUGHT_BY", ())}


@pytest.mark.parametrize("name", NAMES)
def test_the_reference_client_passes_where_the_broken_one_fails(name: str) -> None:
    result = run(find(module(name).SCENARIO), resolve())
    assert result.outcome.verdict is Verdict.PASS
