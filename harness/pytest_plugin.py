"""The pytest plugin: one test for each scenario, with what was found as the message of a failure.

    @pytest.mark.jobsworth(subject="my_package.adapter:build")
    def test_my_client() -> None:
        ...

    def test_my_client(jobsworth: Check) -> None:
        jobsworth("my_package.adapter:build")

Imports of the harness are inside, so that suites which do not use it do not pay for it.
"""

import asyncio
import contextlib
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NoReturn

import pytest

if TYPE_CHECKING:
    from harness.runner import Job, Result
    from harness.subject import Capability, Factory
    from harness.subjects import Subject

__all__ = [
    "Check",
    "pytest_addoption",
    "pytest_configure",
    "pytest_generate_tests",
    "pytest_pycollect_makeitem",
]

_NAME: Final = "jobsworth"
_USAGE: Final = "jobsworth(subject, scenarios=None, mode=None, one_shot=False, rules=None)"
_MOST_FACTS: Final = 12


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup(_NAME, "fault-injection tests for clients of asynchronous job APIs")
    group.addoption("--jobsworth-seed", type=_seed, metavar="N", help="what randomness starts from, in every scenario")


def _seed(text: str) -> int:
    seed = int(text)
    if seed < 0:
        raise ValueError(f"{seed} is under 0")
    return seed


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{_USAGE}: run a client through scenarios, one test for each")


class Check:
    """One scenario, to be run against a client by calling it.

    Attributes:
        scenario: its name.
        result: outcome and history, once it was run.
    """

    def __init__(self, scenario: str, seed: int | None) -> None:
        self.scenario = scenario
        self.result: Result | None = None
        self.called = False
        self._seed = seed

    def __call__(
        self,
        subject: "str | Factory | Sequence[str]",
        *,
        mode: str | None = None,
        one_shot: bool = False,
        rules: int | None = None,
    ) -> "Result":
        """Run the scenario. The test fails if a rule is broken or nothing was proved, and is skipped if the scenario
        does not apply to the client.

        Args:
            subject: ``package.module:factory``, a factory, or a command with its arguments.
            mode: where to run it; the quickest that the client offers if left out.
            one_shot: the command is run once for each operation.
            rules: the edition of the rules to judge by.
        """
        from harness.editions import UnknownEdition, edition
        from harness.runner import Job, run
        from harness.stage import SubjectBroken, SubjectError
        from harness.subjects.resolve import subject_of
        from harness.verdict import Verdict
        from scenarios.loading import ScenarioError, find

        self.called = True
        try:
            _refuse_running_loop()
            under_test = subject_of(subject, one_shot=one_shot)
            where = mode or under_test.modes[0]
            if where not in under_test.modes:
                raise SubjectError(f"{under_test.name} cannot run {where}; it can run {', '.join(under_test.modes)}")
            if rules is not None:
                edition(rules)
            job = Job(
                scenario=find(self.scenario), subject=under_test, mode=where, seed=self._seed, source=self.scenario
            )
            why = _why_not(job)
            if why is not None:
                pytest.skip(f"not applicable: {why}")
            self.result = run(
                job.scenario, under_test, mode=where, seed=self._seed, source=self.scenario, edition=rules
            )
        except (ScenarioError, SubjectBroken, SubjectError, UnknownEdition) as error:
            pytest.fail(str(error), pytrace=False)
        if self.result.outcome.verdict is not Verdict.PASS:
            pytest.fail(_told(self.result), pytrace=False)
        return self.result


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if _NAME not in metafunc.fixturenames:
        return
    from scenarios.loading import load_catalogue

    marker = metafunc.definition.get_closest_marker(_NAME)
    given = _arguments(marker) if marker is not None else {}
    names = given.get("scenarios")
    if names is None:
        names = list(load_catalogue())
    elif not isinstance(names, list | tuple) or not names or not all(isinstance(name, str) for name in names):
        _misused(f"scenarios={names!r}: a list of names and files is wanted; leave it out for the whole catalogue")
    metafunc.parametrize(_NAME, names, indirect=True)


def pytest_pycollect_makeitem(obj: object) -> None:
    """A test that is marked needs the fixture, whether it names it or not."""
    if any(mark.name == _NAME for mark in getattr(obj, "pytestmark", ()) if isinstance(mark, pytest.Mark)):
        pytest.mark.usefixtures(_NAME)(obj)  # a function, or a class of them


@pytest.fixture
def jobsworth(request: pytest.FixtureRequest) -> Check:
    """One scenario, to be run against a client: ``jobsworth("my_package.adapter:build")``."""
    return Check(request.param, request.config.getoption("--jobsworth-seed"))


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Iterator[None]:
    """Run the scenario of a marked test before its body, which may look at the result."""
    marker = pyfuncitem.get_closest_marker(_NAME)
    check = pyfuncitem.funcargs.get(_NAME)
    if marker is not None and isinstance(check, Check):
        given = _arguments(marker)
        given.pop("scenarios", None)
        check(given.pop("subject"), **given)
    returned = yield
    if isinstance(check, Check) and not check.called:
        pytest.fail(f"the test asks for the fixture {_NAME!r} and never calls it: nothing was run", pytrace=False)
    return returned


def _arguments(marker: pytest.Mark) -> dict[str, Any]:
    allowed = {"subject", "scenarios", "mode", "one_shot", "rules"}
    given = dict(marker.kwargs)
    if marker.args:
        given["subject"] = marker.args[0]
    if "subject" not in given or len(marker.args) > 1 or not given.keys() <= allowed:
        _misused(f"@pytest.mark.{_USAGE}: got {marker.args!r} and {marker.kwargs!r}")
    return given


def _misused(why: str) -> NoReturn:
    """The author's mistake in a marker: an error of the collection, without a traceback through pytest."""
    pytest.fail(why, pytrace=False)


def _refuse_running_loop() -> None:
    """Say what is wrong where a coroutine calls: a run has an event loop of its own, and no loop runs in another."""
    from harness.stage import SubjectError

    with contextlib.suppress(RuntimeError):
        asyncio.get_running_loop()
        raise SubjectError("called from a coroutine: a run has an event loop of its own; call it from a plain function")


@cache
def _capabilities(subject: "Subject", mode: str) -> "Collection[Capability]":
    from harness.runner import capabilities_of, simulated_capabilities

    return simulated_capabilities(subject) if mode == "simulated" else capabilities_of(subject)


def _why_not(job: "Job") -> str | None:
    """Why a scenario does not apply to a client; each client is asked once in a session.

    A file of one's own is run wherever it can be, as by ``jobsworth check --scenario``.
    """
    from harness.applicability import why_not, why_not_patched
    from harness.patching import marks_of
    from harness.runner import SEEN_IN_RUNS
    from scenarios.loading import load_catalogue

    if job.mode not in job.scenario.modes:
        return f"it runs {', '.join(job.scenario.modes)}"
    if job.mode == "patched":
        return why_not_patched(job.scenario, marks_of(job.subject.patched))
    known = _capabilities(job.subject, job.mode)
    if job.mode == "simulated" and job.source not in load_catalogue():
        known = {*known, *SEEN_IN_RUNS}
    return why_not(job.scenario, known)


def _told(result: "Result") -> str:
    """What is wrong with a run, the facts that prove it, and the line that makes it once more."""
    from harness.report.terminal import clean
    from harness.report.words import describe

    outcome = result.outcome
    lines = [f"{outcome.verdict}: {outcome.scenario} ({outcome.mode}): {outcome.reason}"]
    for finding in outcome.findings:
        lines.append(f"{finding.rule} ({finding.requirement}): {finding.message}")
        for seq in finding.facts[:_MOST_FACTS]:
            entry = result.history[seq]
            said = describe(entry.fact)
            lines.append(f"  #{seq:<4} {entry.at:9.3f} s  {said.actor:<9} {said.text}")
    lines.append(f"reproduce: {outcome.reproduce}")
    return "\n".join(clean(line) for line in lines)
