"""What a job is to do is compared by value, however it is written."""

from typing import Any

import pytest

from fake_provider.facts import asked_digest

ASKED = {"kind": "report", "client_reference": "op-1", "parameters": {"a": [1, {"b": None}], "c": 0.5, "d": "1"}}


@pytest.mark.parametrize(
    "same",
    [
        {"parameters": {"d": "1", "c": 0.5, "a": [1.0, {"b": None}]}, "kind": "report"},  # as JavaScript, and as Perl
        {**ASKED, "request_id": "what the client adds", "client_reference": "op-2"},
    ],
)
def test_what_means_the_same_is_the_same(same: dict[str, Any]) -> None:
    assert asked_digest(same) == asked_digest(ASKED)


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"a": [1, {"b": None}], "c": 0.5},
        {"a": [1, {}], "c": 0.5, "d": "1"},
        {"a": [{"b": None}, 1], "c": 0.5, "d": "1"},
        {"a": [True, {"b": None}], "c": 0.5, "d": "1"},
        {"a": [1, {"b": None}], "c": 0.5, "d": 1},
    ],
)
def test_what_means_something_else_is_not(parameters: dict[str, Any]) -> None:
    assert asked_digest({**ASKED, "parameters": parameters}) != asked_digest(ASKED)


@pytest.mark.parametrize("none", [{}, {"parameters": None}, {"parameters": {}}])
def test_no_parameters_are_none_whether_that_is_said_or_not(none: dict[str, Any]) -> None:
    assert asked_digest({"kind": "report", **none}) == asked_digest({"kind": "report"})


def test_what_is_nested_beyond_reason_is_not_compared() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert asked_digest({"parameters": {"deep": deep}}) is None
