"""What newcomers get wrong in a Python client: each mistake ends with its reason, as no pass and with no traceback."""

import asyncio
import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from click.testing import CliRunner

import harness.hanging
import harness.simulation
import harness.virtual_time
from harness.cli import cli
from harness.patching import PatchedHost, patched
from harness.runner import Result, run
from harness.stage import SubjectError
from harness.subject import Claim, Host, Outlook
from harness.subjects import Subject, resolve
from harness.verdict import Verdict
from harness.virtual_time import Simulation
from scenarios.loading import find


class Client:
    """In order, but for what a test does to it."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.http = httpx2.AsyncClient(transport=host.transport, base_url=host.base_url, timeout=1.0)

    async def submit(self, operation: str, request: Mapping[str, Any]) -> None:
        """Take it."""

    async def cancel(self, operation: str, who: str, why: str) -> None:
        """Take it."""

    async def report(self) -> Sequence[Claim]:
        return []


def told(submit: Callable[..., Any] | None = None, report: Callable[..., Any] | None = None) -> Result:
    """The happy path with a client that has another method."""

    def build(host: Host) -> Client:
        client = Client(host)
        if submit is not None:
            client.submit = submit.__get__(client)  # type: ignore[method-assign]
        if report is not None:
            client.report = report.__get__(client)  # type: ignore[method-assign]
        return client

    return run(find("happy-path"), Subject(name="mistaken", factory=build))


def expectation(result: Result) -> str:
    return next(each.message for each in result.outcome.findings if each.rule == "scenario-expectation")


# -- what escapes from the client's code


async def raises(_self: Client, *_said: Any, **_more: Any) -> None:
    raise LookupError("no such table")


async def exits(_self: Client, *_said: Any, **_more: Any) -> None:
    sys.exit(0)


async def cancels_itself(_self: Client, *_said: Any, **_more: Any) -> None:
    raise asyncio.CancelledError


async def on_httpx(self: Client, *_said: Any, **_more: Any) -> None:
    transport: Any = self.host.transport
    await httpx.AsyncClient(transport=transport).post("http://provider.test/v1/jobs")


def is_not_async(_self: Client, *_said: Any, **_more: Any) -> None:
    """Forget the async."""


def takes_no_request(_self: Client, operation: str) -> None:
    """Forget an argument."""


@pytest.mark.parametrize(
    ("submit", "reason"),
    [
        (raises, "(submit() raised LookupError at test_mistakes.py:"),
        (raises, ": no such table)"),
        (exits, "(the client crashed: the program ended itself at test_mistakes.py:"),
        (exits, "(SystemExit: 0); a client under test must go on living"),
        (cancels_itself, "(submit() raised CancelledError at test_mistakes.py:"),
        (on_httpx, "this transport is for httpx2.AsyncClient; it was given a request of httpx)"),
        (is_not_async, "it is not async: it returned a NoneType, which cannot be awaited)"),
        (takes_no_request, "got an unexpected keyword argument 'request')"),
    ],
)
def test_the_finding_says_what_escaped_from_the_client(submit: Callable[..., Any], reason: str) -> None:
    result = told(submit=submit)
    assert result.outcome.verdict is Verdict.FAIL
    assert reason in expectation(result)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (None, "report() returned a NoneType; a list of harness.subject.Claim is wanted"),
        ({"op-1": "succeeded"}, "report() returned a dict; a list of harness.subject.Claim is wanted"),
        ([{"operation": "op-1"}], "a dict, where a harness.subject.Claim is wanted"),
        ([Claim(operation="op-1", state="done")], "has the state 'done'; one of accepted"),
    ],
)
def test_the_finding_says_what_is_wrong_with_a_report(said: Any, reason: str) -> None:
    async def report(_self: Client) -> Any:
        return said

    assert reason in expectation(told(report=report))


async def ends_from_a_task(_self: Client, *_said: Any, **_more: Any) -> None:
    async def end() -> None:
        sys.exit(0)

    await asyncio.gather(asyncio.ensure_future(end()))


async def sleeps_for_real(_self: Client, *_said: Any, **_more: Any) -> None:
    import time

    time.sleep(1)  # noqa: ASYNC251  the mistake


async def stops_the_loop(_self: Client, *_said: Any, **_more: Any) -> None:
    asyncio.get_running_loop().stop()


async def spins(_self: Client, *_said: Any, **_more: Any) -> None:
    while True:  # noqa: ASYNC110  the mistake
        await asyncio.sleep(0)


async def asks_without_end(self: Client, *_said: Any, **_more: Any) -> None:
    while True:
        await self.http.get("/v1/jobs/job_1")


async def computes_without_end(self: Client, *_said: Any, **_more: Any) -> None:
    due = self.host.clock.now() + 1
    while self.host.clock.now() < due:
        with contextlib.suppress(Exception):
            (_ for _ in "nothing")


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(harness.simulation, "MAX_CALLBACKS_PER_INSTANT", 1_000)
    monkeypatch.setattr(harness.virtual_time, "MAX_REQUESTS_PER_INSTANT", 100)
    monkeypatch.setattr(harness.hanging, "LONGEST_TURN_S", 0.05)
    return iter(())


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize(
    ("submit", "reason"),
    [
        (ends_from_a_task, "w1 ended its program from a task of its own"),
        (sleeps_for_real, "w1 tried time.sleep() in a simulation. Use the transport and the clock"),
        (stops_the_loop, "w1 tried to stop the event loop in a simulation"),
        (spins, "something spins instead of waiting on the clock it was given"),
        (asks_without_end, "the client asks again without waiting"),
        (computes_without_end, "w1 has computed for 5 seconds of processor time at t=0.000s and gave nobody a turn"),
    ],
)
def test_what_cannot_be_simulated_breaks_the_run_off_with_the_reason(submit: Callable[..., Any], reason: str) -> None:
    outcome = told(submit=submit).outcome
    assert reason in outcome.reason
    assert outcome.verdict is not Verdict.PASS
    assert "scenario-expectation" not in {each.rule for each in outcome.findings}  # it did not come to its end


# -- factories


def async_factory(_host: Host) -> Any:
    async def make() -> None:
        """Await something first."""

    return make()


@pytest.mark.parametrize(
    ("factory", "reason"),
    [
        (lambda _host: Client, "returned the class Client itself, not an instance of it"),
        (lambda _host: None, "returned None; a client has the async methods submit, cancel and report"),
        (lambda _host: object(), "returned a object without submit and cancel and report"),
        (async_factory, "returned something to be awaited: the factory must not be async"),
        (lambda: None, "takes 0 positional arguments but 1 was given"),
        (lambda _host: sys.exit(0), "the program ended itself at test_mistakes.py:"),
        (lambda _host: int("x"), "the subject's factory failed: ValueError at test_mistakes.py:"),
    ],
)
def test_a_factory_that_makes_no_client_is_refused_with_the_reason(factory: Any, reason: str) -> None:
    with pytest.raises(SubjectError) as caught:
        run(find("happy-path"), Subject(name="mistaken", factory=factory))
    assert reason in str(caught.value)


# -- modules


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("clients/mine.py:build", "is no module; it is named by its whole dotted name"),
        ("clients/mine.py:build", "did you mean 'clients.mine:build'?"),
        ("./mine.py:build", "did you mean 'mine:build'?"),
        (".mine:build", "did you mean 'mine:build'?"),
        ("..:build", "is no module"),
    ],
)
def test_a_path_is_no_module(spec: str, reason: str) -> None:
    with pytest.raises(SubjectError) as caught:
        resolve(spec)
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import sys\nsys.exit(0)\n", "the program ended itself at ends_itself.py:2 (SystemExit: 0)"),
        ("\n1 / 0\n", "ZeroDivisionError at ends_itself.py:2: division by zero"),
        ("from . import other\n", "ImportError at ends_itself.py:1: attempted relative import"),
        ("build = 5\n", "is of type int, not a factory"),
    ],
)
def test_a_module_that_cannot_be_imported_is_never_a_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, reason: str
) -> None:
    (tmp_path / "ends_itself.py").write_text(code, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "ends_itself", raising=False)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    result = CliRunner().invoke(cli, ["check", "ends_itself:build"])
    assert result.exit_code == 2
    assert reason in result.stderr
    monkeypatch.delitem(sys.modules, "ends_itself", raising=False)


# -- patched


class Blocking:
    def submit(self, operation: str, request: Mapping[str, Any]) -> None:
        sys.exit(0)

    def report(self) -> list[Claim]:
        return []


@patched()
def build_blocking(_host: PatchedHost) -> Blocking:
    return Blocking()


def test_patched_code_that_ends_the_program_makes_the_run_unknown() -> None:
    outcome = run(find("happy-path"), Subject(name="mistaken", patched=build_blocking)).outcome
    assert outcome.verdict is Verdict.UNKNOWN
    assert "w1 ended by itself, and cannot be started again: the program ended itself" in outcome.reason


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"capabilities": ["cancl"]}, r"a list of cancel, decide, reconcile, webhooks; found \['cancl'\]"),
        ({"capabilities": "cancel"}, "found 'cancel'"),
        ({"dialect": "opanai"}, "there is no dialect 'opanai'; one of jobs, openai-batch"),
    ],
)
def test_a_misspelt_mark_does_not_leave_scenarios_out(said: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        patched(**said)


# -- outlooks


@pytest.mark.parametrize("said", [5, None, Outlook(state=1, ends={"deadline": "soon"})])  # type: ignore[dict-item]
def test_an_outlook_that_is_none_is_refused_before_anything_is_compared_by_it(said: Any) -> None:
    class Candid(Client):
        def outlook(self) -> Outlook:
            return said  # type: ignore[no-any-return]

    with Simulation(find("happy-path"), Candid, seed=0) as simulation:
        simulation.start()
        with pytest.raises(TypeError, match="is no Outlook with seconds as its ends"):
            simulation.outlook()
