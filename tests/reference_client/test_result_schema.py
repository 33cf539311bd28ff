"""A result must meet the JSON Schema that was given for it, where one was (W7.2)."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from reference_client.config import ConfigError
from reference_client.lifecycle import LocalState
from reference_client.schema import ResultSchema

if TYPE_CHECKING:
    from tests.reference_client.conftest import Say, Story

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["records"],
    "properties": {"records": {"type": "array", "items": {"properties": {"amount": {"type": "number"}}}}},
}


def body(amount: Any) -> bytes:
    record = {"id": "r1", "status": "ok", "amount": amount}
    return json.dumps({"client_reference": "op-1", "records": [record]}).encode()


def collected(story: Story, say: type[Say], result: bytes) -> LocalState:
    story.workflow.result_schema = ResultSchema(SCHEMA)
    story.accepted()
    story.call(say.status("succeeded"), 1.0)
    return story.call(say.answer(200, result), 1.0).state


def test_a_result_that_meets_it_succeeds(story: Story, say: type[Say]) -> None:
    assert collected(story, say, body(7)) is LocalState.SUCCEEDED


def test_a_result_that_breaks_it_does_not_and_the_place_is_named(story: Story, say: type[Say]) -> None:
    assert collected(story, say, body("a private text")) is LocalState.RESULT_VALIDATION_FAILED
    assert "$.records[0].amount breaks 'type'" in (story.operation.explanation or "")


def test_what_stands_there_is_not_repeated(story: Story, say: type[Say]) -> None:
    collected(story, say, body("a private text"))
    assert "private" not in repr(story.entries)


@pytest.mark.parametrize("text", [b"", b"<html>", b"[" * 100_000])
def test_what_is_no_json_breaks_every_schema(text: bytes) -> None:
    assert ResultSchema(SCHEMA).problems(text) == ("the result is no JSON",)


def test_problems_without_end_are_cut() -> None:
    many = json.dumps({"records": [{"amount": "x"}] * 1000}).encode()
    assert len(ResultSchema(SCHEMA).problems(many)) == 20


def test_a_schema_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match="result schema"):
        ResultSchema({"type": "objekt"})


def test_without_the_package_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema", None)
    with pytest.raises(ConfigError, match="extra `schema`"):
        ResultSchema(SCHEMA)
