"""What the documents say of the reference client is so."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_client.adapters import protocol as p
from reference_client.config import Terms, Timing
from reference_client.lifecycle import LocalState
from reference_client.workflow import Workflow

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.reference_client.conftest import Story

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "reference-client.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (W[0-9.]+) \| (.+?) \| (.+?) \|$", PAGE, re.MULTILINE)
W10 = [f"W10.{number}" for number in range(1, 6)]


def required() -> list[str]:
    text = (DOCS / "requirements.md").read_text(encoding="utf-8")
    return [*re.findall(r"^- \*\*(W[0-9]+\.[0-9]+)\*\*", text, re.MULTILINE), "W9", *W10]


def test_the_table_has_every_requirement_once_and_in_order() -> None:
    assert len(required()) > 40
    assert [row[0] for row in ROWS] == required()


def links(cell: str) -> list[tuple[str, Path]]:
    found = re.findall(r"\[`?([^\]`]+)`?\]\(([^)]+)\)", cell)
    return [(text, (DOCS / target).resolve()) for text, target in found]


def named(dotted: str) -> Any:
    """Find ``module.Class.member`` under the package."""
    words = dotted.split(".")
    for length in range(len(words), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(["reference_client", *words[:length]]))
        except ModuleNotFoundError:
            continue
        for word in words[length:]:
            found = getattr(found, word)
        return found
    raise AssertionError(f"there is no {dotted}")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_each_row_names_code_that_is_there_and_a_test_that_is_there(row: tuple[str, str, str]) -> None:
    _, code, proof = row
    assert links(code)
    for dotted, path in links(code):
        assert named(dotted) is not None
        assert path.is_file()
    assert links(proof)
    for title, path in links(proof):
        assert path.is_file()
        if path.suffix == ".py":
            assert f"def test_{title.replace(' ', '_')}(" in path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def exports() -> Any:
    """The adapter that the tutorial builds, as it stands there."""
    text = (DOCS / "write-an-adapter.md").read_text(encoding="utf-8")
    (source,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    module: dict[str, Any] = {"__name__": "exports"}
    exec(compile(source, "write-an-adapter.md", "exec"), module)  # noqa: S102  our own document
    return module["ExportsAdapter"](Terms())


def told(body: Any, status: int = 200) -> p.Answer:
    return p.Answer(
        url="http://provider.test/exports",
        status=status,
        headers={"content-type": "application/json"},
        body=msgspec.json.encode(body),
        received_at=0.0,
    )


def test_the_tutorials_adapter_takes_an_operation_from_start_to_end(
    exports: Any, story: Story, make_story: Callable[..., Story]
) -> None:
    story.workflow = Workflow(exports, terms=Terms(), timing=Timing(), random=Random(1))
    story.call(told({"export": "x1", "phase": "waiting", "client_reference": "op-1"}, 201), 0.0)
    story.call(told({"export": "x1", "phase": "working"}), story.operation.next_attempt_at + 5)
    story.call(told({"export": "x1", "phase": "done"}), story.operation.next_attempt_at)
    rows = [{"id": "r1", "ok": True}, {"id": "r2", "ok": False}]
    operation = story.call(told({"rows": rows}), story.operation.next_attempt_at)
    assert operation.state is LocalState.SUCCEEDED
    assert operation.collected is not None
    assert (operation.collected.records, operation.collected.failed_references) == (2, ("r2",))


@given(
    status=st.integers(100, 599), body=st.binary(max_size=40), kind=st.sampled_from(["application/json", "text/html"])
)
def test_the_tutorials_adapter_keeps_the_rules_that_it_teaches(
    exports: Any, status: int, body: bytes, kind: str
) -> None:
    answer = p.Answer(url="http://x.test/", status=status, headers={"content-type": kind}, body=body, received_at=0.0)
    assert not isinstance(exports.read_create(answer), p.Accepted)
    assert not isinstance(exports.read_status(answer), p.JobReport)
    assert not isinstance(exports.read_lookup(answer), p.Found | p.Absent)
    exports.read_cancel(answer)
    exports.read_result(answer)
    assert exports.read_event(body) is None
