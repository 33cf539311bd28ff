"""The pages with Python on them: the code is run as it stands there."""

import re
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Any

import msgspec
import pytest
from hypothesis import settings

from fake_provider import boundary
from fake_provider.boundary import Boundary
from fake_provider.dialects import DIALECTS
from fake_provider.effects import Send
from fake_provider.facts import AnswerEnded, JobCreated, ProviderFact
from fake_provider.wire import Answer, Request
from harness.explore import floors, suite
from harness.history import Claimed, SubjectComplained
from harness.patching import marks_of
from harness.runner import run
from harness.subjects import Subject
from scenarios.loading import find

DOCS = Path(__file__).parents[2] / "docs"
LONGEST_EXAMPLE = 32


def blocks(name: str) -> list[str]:
    page = (DOCS / name).read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)


def ran(code: str) -> dict[str, Any]:
    space: dict[str, Any] = {"__name__": "example"}
    exec(compile(code, "example", "exec"), space)  # noqa: S102  it is our own page
    return space


@pytest.mark.parametrize("number", [0, 1], ids=["simulated", "patched"])
def test_the_shortest_clients_are_short_and_do_what_they_are_for(number: int) -> None:
    code = blocks("simulated-and-patched.md")[number]
    assert len([line for line in code.splitlines() if line.strip()]) <= LONGEST_EXAMPLE
    build = ran(code)["build"]
    marked = marks_of(build) is not None
    assert marked is (number == 1)
    subject = Subject(name="example:build", **{"patched" if marked else "factory": build})
    result = run(find("happy-path"), subject)
    assert result.outcome.mode == ("patched" if marked else "simulated")
    assert not [entry for entry in result.history if isinstance(entry.fact, SubjectComplained)]
    claims = [entry.fact.state for entry in result.history if isinstance(entry.fact, Claimed)]
    assert claims[-1] == "succeeded"


class Renders:
    """The dialect of the page, behind a boundary."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        dialect = ran(blocks("write-a-dialect.md")[0])["DIALECT"]
        monkeypatch.setattr(boundary, "DIALECTS", MappingProxyType({**DIALECTS, dialect.name: dialect}))
        self.facts: list[ProviderFact] = []
        self.boundary = Boundary(
            dialect.likeness,
            dialect="renders",
            base_url="http://provider.test",
            random=Random(1),
            record=self.facts.append,
        )

    def ask(self, method: str, path: str, body: bytes = b"", now: float = 0) -> Answer:
        url = "http://provider.test"
        request = Request(method=method, path=path, query="", headers={}, body=body, base_url=url)
        send = next(exchange := self.boundary.exchange(request, "w1", now))
        assert isinstance(send, Send)
        assert send.answer is not None
        with pytest.raises(StopIteration):
            exchange.send(now)
        return send.answer


def test_the_dialect_of_the_guide_works(monkeypatch: pytest.MonkeyPatch) -> None:
    renders = Renders(monkeypatch)
    body = b'{"ref": "op-1", "key": "k-1"}'
    made, again = renders.ask("POST", "/renders", body), renders.ask("POST", "/renders", body)
    (job,) = [fact.job for fact in renders.facts if isinstance(fact, JobCreated)]
    assert (made.status, made.job, again.job, again.replayed) == (201, job, job, True)
    assert job.startswith("render-")
    assert msgspec.json.decode(renders.ask("GET", f"/renders/{job}").body) == {"render": job, "is": "rendering"}
    assert renders.ask("GET", f"/renders/{job}/frames").status == 409
    done = renders.ask("GET", f"/renders/{job}", now=3)
    assert (done.remote_state, done.canonical_state) == ("done", "succeeded")
    frames = msgspec.json.decode(renders.ask("GET", f"/renders/{job}/frames", now=3).body)
    assert frames == {"of": "op-1", "frames": [["r1", None], ["r2", None], ["r3", None]]}
    assert renders.ask("POST", "/renders", b"{").status == 400
    assert renders.ask("DELETE", f"/renders/{job}").status == 404
    assert {fact.operation for fact in renders.facts if isinstance(fact, AnswerEnded) and fact.job} == {"op-1"}


def test_a_module_that_holds_a_dialect_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One file, and no other is touched: the package finds it."""
    from fake_provider import dialects

    code = blocks("write-a-dialect.md")[0]
    (tmp_path / "renders.py").write_text(code, encoding="utf-8")
    monkeypatch.setattr(dialects, "__path__", [*dialects.__path__, str(tmp_path)])
    assert set(dialects._found()) == {*DIALECTS, "renders"}


def test_the_machine_in_a_suite_is_the_lines_of_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = blocks("exploration.md")
    case: Any = ran(code.replace("my_package.adapter:build", "reference"))["TestMyClient"]
    assert case.settings.max_examples == 50
    monkeypatch.setattr(case, "settings", settings(case.settings, max_examples=5, database=None, derandomize=True))
    case().runTest()


def test_the_floors_are_those_of_the_page() -> None:
    page = (DOCS / "exploration.md").read_text(encoding="utf-8")
    for least, share in floors.SHARES:
        assert f"| {least:,} | {'all' if share == 1 else f'{share:.0%}'.replace('%', ' %')} |" in page
    for least, share in suite.SHARES:
        assert f"{share:.0%}".replace("%", f" % from {least}") in page
