"""The rules find nothing in clients that are right, however differently they are made."""

from pathlib import Path

import pytest

from harness.explore.exploration import explore
from harness.runner import run
from harness.subjects import resolve
from scenarios.loading import load, load_catalogue
from scenarios.model import Scenario

TESTS = Path(__file__).parents[2]
NAMES = sorted(path.stem for path in (TESTS / "correct_clients").glob("*.py") if not path.stem.startswith("_"))
TOLD = [*load_catalogue().values(), *(load(str(path)) for path in TESTS.glob("broken_clients/scenarios/*.yaml"))]
STORIES = [story for story in TOLD if "simulated" in story.modes]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scenario", STORIES, ids=lambda scenario: scenario.name)
def test_no_rule_accuses_a_correct_client(scenario: Scenario, name: str) -> None:
    outcome = run(scenario, resolve(f"tests.correct_clients.{name}:build")).outcome
    # How a story may end is the story's affair: a slow client may rest in another state.
    assert [finding for finding in outcome.findings if finding.rule != "scenario-expectation"] == []


@pytest.mark.parametrize("name", NAMES)
def test_exploring_finds_nothing_in_a_correct_client(name: str) -> None:
    exploration = explore(resolve(f"tests.correct_clients.{name}:build"), examples=40, steps=30, seed=1)
    assert exploration.findings == ()
