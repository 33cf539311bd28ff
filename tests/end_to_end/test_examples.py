"""The examples: as people write them they fail, and the report says why; repaired they pass every scenario that
applies. They are run as a person would run them.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness.applicability import why_not
from harness.explore.sweep import CORE
from harness.runner import Job, run_many, sort_out
from harness.subjects import Subject
from harness.verdict import Outcome, Verdict
from scenarios.loading import find, load_catalogue

EXAMPLES = Path(__file__).parents[2] / "examples"
MUST_RUN = os.environ.get("JOBSWORTH_TESTS_MUST_RUN", "").split()
"""Programs without which these tests fail instead of being skipped."""

QUICK_JAVA = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""A program that lives for seconds pays back neither the optimising compiler nor a collector with threads of its own:
without them it takes two thirds of the processor time."""


def tool(name: str) -> str:
    path = shutil.which(name)
    if path is None and name not in MUST_RUN:
        pytest.skip(f"there is no {name} here")
    assert path is not None, f"there is no {name} here, and JOBSWORTH_TESTS_MUST_RUN names it"
    return path


@pytest.fixture(scope="session")
def java_classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Java examples, compiled once; ``java File.java`` would do so for every run."""
    directory = tmp_path_factory.mktemp("java")
    sources = map(str, sorted((EXAMPLES / "java").glob("*.java")))
    subprocess.run([tool("javac"), "-Xlint:all", "-Werror", "-d", str(directory), *sources], check=True)  # noqa: S603
    return directory


def example(language: str, which: str, request: pytest.FixtureRequest) -> Subject:
    if language == "java":
        classes = request.getfixturevalue("java_classes")
        command: tuple[str, ...] = (tool("java"), *QUICK_JAVA, "-cp", str(classes), which.capitalize())
    elif language == "node":
        command = (tool("node"), str(EXAMPLES / "node" / f"{which}.mjs"))
    else:
        command = (sys.executable, str(EXAMPLES / "python_requests" / f"{which}.py"))
    return Subject(name=f"{language} {which}", command=command, one_shot=True)


def outcomes(subject: Subject, *names: str) -> dict[str, Outcome]:
    stories = [find(name) for name in names] or [each for each in load_catalogue().values() if "process" in each.modes]
    jobs, _ = sort_out([Job(scenario=scenario, subject=subject, mode="process") for scenario in stories])
    return {result.outcome.scenario: result.outcome for result in run_many(jobs)}


@pytest.mark.parametrize("language", ["python_requests", "node", "java"])
def test_as_people_write_it_a_client_passes_on_a_good_day_and_fails_on_others(
    language: str, request: pytest.FixtureRequest
) -> None:
    found = outcomes(example(language, "naive", request), "happy-path", "lost-create-response", "result-damaged")
    assert found["happy-path"].verdict is Verdict.PASS
    for name, rule, words in (
        ("lost-create-response", "one-job-per-operation", "operation op-1 has 2 jobs"),
        ("lost-create-response", "same-token-on-retry", "Send the stored token again"),
        ("result-damaged", "harmed-result-not-taken", "each result that came was damaged"),
    ):
        assert found[name].verdict is Verdict.FAIL
        assert [words in each.message for each in found[name].findings if each.rule == rule] == [True]


def test_repaired_a_client_passes_every_scenario_that_applies(request: pytest.FixtureRequest) -> None:
    found = outcomes(example("python_requests", "repaired", request))
    assert {name: each.reason for name, each in found.items() if each.verdict is not Verdict.PASS} == {}
    assert len(found) > 50


def one_for_each_requirement() -> list[str]:
    """The core, and of the other stories that a one-shot command can play each that is about something new."""
    chosen, covered = list(CORE), set[str]()
    for name, story in sorted(load_catalogue().items()):
        if "process" in story.modes and why_not(story, ()) is None and not covered.issuperset(story.requirements):
            chosen.append(name)
            covered.update(story.requirements)
    return chosen


@pytest.mark.parametrize("language", ["node", "java"])
def test_in_another_language_it_passes_one_for_each_requirement(language: str, request: pytest.FixtureRequest) -> None:
    """It is the same client once more, so that not every scenario is worth its time."""
    client = example(language, "repaired", request)
    found = outcomes(client, *one_for_each_requirement())
    assert len(found) > 15
    # Where every core has other work, a machine that is just starting may read an answer after its own time-out.
    late = [name for name, each in found.items() if each.verdict is not Verdict.PASS]
    again = outcomes(client, *late) if late else {}
    assert {name: each.reason for name, each in again.items() if each.verdict is not Verdict.PASS} == {}
