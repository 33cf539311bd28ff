"""The machine in someone's own suite: what it takes, how it fails there, and when its silence means nothing."""

import io
import unittest
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.database import InMemoryExampleDatabase
from hypothesis.errors import InvalidArgument
from hypothesis.stateful import rule

from fake_provider.contract import Contract
from fake_provider.presets import PRESETS
from harness.explore.machine import Machine, machine_for
from harness.explore.suite import NothingProved, RuleBroken
from harness.explore.tally import Tally
from harness.patching import PatchedClient, PatchedHost, patched
from harness.runner import run
from harness.stage import SubjectError
from harness.subject import Claim, Host, Refused
from harness.subjects.reference import build
from harness.subjects.resolve import subject_of
from scenarios.loading import ScenarioError, load, parse
from tests.broken_clients.new_token_per_retry import build as broken

pytest_plugins = ["pytester"]

QUICK = settings(
    max_examples=10,
    stateful_step_count=10,
    database=None,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
FIRST = settings(QUICK, phases=[Phase.generate])
"""As it is found: what Hypothesis makes of it after that takes its time, and is Hypothesis's own matter."""


class Mute:
    """A client that calls nobody and promises nothing."""

    async def submit(self, operation: str, request: Mapping[str, Any]) -> None:
        raise Refused(f"{operation} is not for me")

    async def cancel(self, operation: str, who: str, why: str) -> None:
        raise Refused(f"{operation} is not for me")

    async def report(self) -> list[Claim]:
        return []


def mute(_host: Host) -> Mute:
    return Mute()


def failing(_host: Host) -> Mute:
    raise RuntimeError("no configuration")


def outcome_of(machine: type[Machine], options: settings = QUICK) -> BaseException | None:
    """What the test case of a machine raises, as a suite would run it."""
    case: Any = machine.TestCase
    case.settings = options
    try:
        case().runTest()
    except Exception as error:  # noqa: BLE001  whatever it is
        return error
    return None


def leaves(error: BaseException | None) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from leaves(each)
    elif error is not None:
        yield error


def test_a_breach_comes_with_the_least_scenario_that_shows_it(tmp_path: Path) -> None:
    """What is in the message is a scenario file: copied out of it, it breaks the same rule in the same words."""
    breach = next(leaves(outcome_of(machine_for(broken), FIRST)))
    assert isinstance(breach, RuleBroken)
    told = breach.__notes__[-1]
    assert told.endswith("explored-same-token-on-retry.yaml tests.broken_clients.new_token_per_retry:build")
    text = "\n".join(line.removeprefix("    ") for line in told.splitlines() if line.startswith("    "))
    story = parse(text)
    assert len(story.steps) + len(story.faults) <= 3, text
    (found,) = (each for each in run(story, subject_of(broken)).outcome.findings if each.rule == "same-token-on-retry")
    assert found.message == story.summary
    assert not list(tmp_path.iterdir())


def test_the_scenario_of_a_breach_is_saved_where_that_is_asked_for(tmp_path: Path) -> None:
    breach = next(leaves(outcome_of(machine_for(broken, save=tmp_path / "failures"), FIRST)))
    (path,) = (tmp_path / "failures").iterdir()
    assert str(path) in breach.__notes__[-1]
    assert load(path).summary


def test_a_breach_that_the_steps_do_not_tell_of_is_said_to_be_one() -> None:
    """A rule of someone's own may do to the simulation what no step does: then no file shows it."""

    class Own(machine_for(build)):  # type: ignore[misc]
        @rule()
        def meddle(self) -> None:
            assert self.simulation is not None
            self._check(run(parse(STORY), subject_of(broken)).outcome.findings)

    breach = next(leaves(outcome_of(Own, FIRST)))
    assert isinstance(breach, RuleBroken)
    assert "what the machine did is not all in its steps" in breach.__notes__[-1]


STORY = """\
name: retry
summary: The answer is lost.
steps: [{at: 0, do: submit, operation: op-1}]
faults: [{kind: answer_lost, at: create#1:committed}]
"""


def test_rules_of_ones_own_are_run_and_fail_as_they_would_in_any_machine() -> None:
    class Own(machine_for(build)):  # type: ignore[misc]
        @rule()
        def meddle(self) -> None:
            raise ZeroDivisionError("my own")

    assert [type(each) for each in leaves(outcome_of(Own, FIRST))] == [ZeroDivisionError]


def test_a_client_that_calls_nobody_is_no_pass() -> None:
    error = outcome_of(machine_for(mute))
    assert isinstance(error, NothingProved)
    assert "unknown: the subject never called the provider" in str(error)


def test_a_run_of_many_examples_that_went_too_few_places_is_no_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.explore.suite.SHARES", ((1, 1.0),))
    error = outcome_of(machine_for(build))
    assert isinstance(error, NothingProved)
    assert "fault kinds were visited, where" in str(error)
    assert outcome_of(machine_for(build, Contract())) is None  # one contract is not to be everywhere


def test_where_hypothesis_is_told_to_run_nothing_the_test_is_skipped() -> None:
    error = outcome_of(machine_for(build), settings(QUICK, phases=[Phase.explicit]))
    assert isinstance(error, unittest.SkipTest)


def test_a_subject_that_cannot_be_started_says_so_once_and_without_an_example() -> None:
    error = outcome_of(machine_for(failing))
    assert isinstance(error, SubjectError)
    assert "no configuration" in str(error)
    assert not hasattr(error, "__notes__")


@patched()
def patched_client(host: PatchedHost) -> PatchedClient:
    """Made for another mode."""
    raise NotImplementedError(host)


@pytest.mark.parametrize(
    ("subject", "said"),
    [
        ("tests.nowhere:build", "no module 'tests.nowhere'"),
        ("tests.broken_clients.no_lease:buidl", "did you mean 'build'"),
        (patched_client, "exploration needs a client that can be simulated, and this one is run patched"),
        (["true"], "this one is run process"),
        (42, "42 is no subject"),
    ],
)
def test_what_is_no_subject_is_refused_at_once(subject: Any, said: str) -> None:
    with pytest.raises(SubjectError, match=said):
        machine_for(subject)


def test_a_contract_is_given_or_named() -> None:
    assert machine_for(build, "stripe-like").contract == PRESETS["stripe-like"]
    with pytest.raises(ScenarioError, match="stripe-lik"):
        machine_for(build, "stripe-lik")
    with pytest.raises(TypeError, match="is no contract"):
        machine_for(build, 42)  # type: ignore[arg-type]


def test_two_machines_do_not_drop_each_others_failing_examples() -> None:
    """Hypothesis keeps them by the machine's name, and drops what does not fail any more."""
    database = InMemoryExampleDatabase()
    kept = settings(QUICK, derandomize=False, database=database, phases=[Phase.reuse, Phase.generate])
    assert outcome_of(machine_for(broken), kept) is not None
    before = {key: frozenset(values) for key, values in database.data.items() if values}
    assert before
    assert outcome_of(machine_for(build), kept) is None
    assert outcome_of(machine_for(broken, Contract()), settings(kept, phases=[Phase.reuse])) is not None
    assert before.items() <= {key: frozenset(values) for key, values in database.data.items()}.items()
    again = machine_for(broken, tally=(tally := Tally()))
    assert isinstance(next(leaves(outcome_of(again, settings(kept, phases=[Phase.reuse])))), RuleBroken)
    assert tally.examples <= 2  # it is replayed first, and nothing else is needed


def test_settings_are_given_as_to_any_machine() -> None:
    tally = Tally()
    decorated = settings(QUICK, max_examples=3)(machine_for(build, tally=tally))
    result = unittest.TextTestRunner(stream=io.StringIO()).run(decorated.TestCase())
    assert result.wasSuccessful()
    assert 3 <= tally.examples <= 6
    with pytest.raises(InvalidArgument, match="twice"):
        settings(QUICK)(decorated)


def test_lines_of_the_harness_are_not_searched_for_an_explanation(monkeypatch: pytest.MonkeyPatch) -> None:
    """All else is as Hypothesis has it, and as it is set."""
    used: list[settings] = []
    monkeypatch.setattr(
        "harness.explore.suite.run_state_machine_as_test", lambda _machine, *, settings: used.append(settings)
    )
    chosen = settings(QUICK, phases=list(Phase), max_examples=7)
    outcome_of(machine_for(build), chosen)
    (applied,) = used
    assert set(applied.phases) == set(Phase) - {Phase.explain}
    assert applied.max_examples == 7


def test_the_statistics_tell_where_the_runs_have_been(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_own="""
        from hypothesis import settings
        from harness.explore.machine import machine_for

        TestOwn = machine_for("reference").TestCase
        TestOwn.settings = settings(TestOwn.settings, max_examples=10, derandomize=True)
        """
    )
    done = pytester.runpytest_inprocess("--hypothesis-show-statistics", "-p", "no:cacheprovider")
    done.assert_outcomes(passed=1)
    told = done.stdout.str()
    for each in ("transition create_pending -> accepted", "fault ", "commit point ", "promise create_answer="):
        assert f"%, {each}" in told
