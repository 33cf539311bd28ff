"""The curated stories hold together as a collection."""

import pytest

from fake_provider.faults import KINDS
from scenarios.loading import CATALOGUE, load_catalogue
from scenarios.model import Arm, Scenario

SCENARIOS = list(load_catalogue().values())


def kinds_of(scenario: Scenario) -> set[str]:
    armed = [step.fault for step in scenario.steps if isinstance(step, Arm)]
    return {fault.kind for fault in (*scenario.faults, *armed)}


@pytest.mark.parametrize(
    ("requirement", "name"),
    [
        ("W10.1", "lost-create-response"),
        ("W10.2", "crash-before-first-poll"),
        ("W10.3", "cancel-race-completion-wins"),
        ("W10.3", "cancel-race-cancel-wins"),
        ("W10.4", "duplicate-webhook"),
        ("W10.5", "stale-lease"),
    ],
)
def test_each_fault_a_client_must_survive_has_its_story(requirement: str, name: str) -> None:
    assert requirement in load_catalogue()[name].requirements


def test_every_kind_of_fault_strikes_in_some_story() -> None:
    # A changed body under a known key comes only from a client that breaks W1.7: in a story for all it cannot strike.
    assert set().union(*map(kinds_of, SCENARIOS)) == set(KINDS) - {"changed_body_accepted"}


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_every_story_says_which_requirement_it_is_about_and_how_each_operation_may_end(scenario: Scenario) -> None:
    assert scenario.requirements
    assert set(scenario.ends) == set(scenario.jobs) == set(scenario.operations)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_every_story_is_told_in_one_sentence(scenario: Scenario) -> None:
    assert scenario.summary.endswith(".")
    assert "\n" not in scenario.summary


def test_every_file_of_the_catalogue_is_a_story() -> None:
    assert {path.stem for path in CATALOGUE.iterdir()} == set(load_catalogue())
