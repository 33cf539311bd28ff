"""Which scenarios apply to a client."""

from typing import Any, get_args

import pytest

from harness.applicability import retold, why_not, why_not_patched, why_not_process
from harness.patching import Marks
from harness.subject import Capability
from scenarios.loading import load_catalogue
from scenarios.model import Scenario

SUBMIT = {"at": 0, "do": "submit", "operation": "op-1"}


def story(**more: Any) -> Scenario:
    return Scenario.model_validate({"name": "a-story", "summary": "Something happens.", "steps": [SUBMIT], **more})


def test_the_least_client_can_be_told_to_submit() -> None:
    assert why_not(story(faults=[{"kind": "answer_lost", "at": "create#1:committed"}]), ()) is None


@pytest.mark.parametrize(
    ("more", "need", "reason"),
    [
        ({"workers": 2}, "workers", "several workers"),
        ({"contract": {"webhooks": {"enabled": True}}}, "webhooks", "sends webhooks"),
        ({"steps": [SUBMIT, {"at": 1, "do": "cancel", "operation": "op-1"}]}, "cancel", "to cancel"),
        ({"steps": [SUBMIT, {"at": 1, "do": "reconcile", "operation": "op-1"}]}, "reconcile", "to look again"),
        (
            {"steps": [SUBMIT, {"at": 1, "do": "decide", "operation": "op-1", "state": "failed"}]},
            "decide",
            "a person decided",
        ),
        ({"faults": [{"kind": "kill", "at": "store#1:committed"}]}, "checkpoints", "durable write"),
        (
            {"steps": [SUBMIT, {"at": 1, "do": "arm", "fault": {"kind": "kill", "at": "store#1:committed"}}]},
            "checkpoints",
            "durable write",
        ),
    ],
)
def test_a_story_that_needs_more_says_what(more: dict[str, Any], need: Capability, reason: str) -> None:
    all_but_one = [each for each in get_args(Capability) if each != need]
    assert reason in str(why_not(story(**more), all_but_one))
    assert why_not(story(**more), [need]) is None


def test_a_story_that_sets_a_clock_does_not_apply_to_a_process() -> None:
    told = story(faults=[{"kind": "clock_skewed", "at": "create#1:committed"}], workers=2)
    assert why_not(told, get_args(Capability)) is None
    reason = str(why_not_process(told, ()))
    assert "several workers" in reason
    assert "run it simulated" in reason
    assert why_not_process(story(), ()) is None


def spoken(scenario: Scenario) -> str:
    """The dialect of those that a story is for."""
    return "openai-batch" if scenario.modes == ("patched",) else "jobs"


@pytest.mark.parametrize("endpoint", ["upload", "annex"])
def test_a_fault_is_placed_where_the_dialect_has_a_request(endpoint: str) -> None:
    told = story(faults=[{"kind": "answer_lost", "at": f"{endpoint}#1:committed"}])
    assert f"the endpoint {endpoint}, which the dialect jobs" in str(why_not(told, ()))
    assert why_not(told, (), "openai-batch") is None
    assert why_not_patched(told, OPENAI) is None


def test_every_story_of_the_catalogue_applies_to_a_client_that_can_do_everything() -> None:
    assert [name for name, each in load_catalogue().items() if why_not(each, get_args(Capability), spoken(each))] == []


# -- patched


OPENAI = Marks(dialect="openai-batch", capabilities=frozenset())


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"faults": [{"kind": "kill", "at": "create#1:committed"}]}, "kills or freezes"),
        ({"faults": [{"kind": "stop", "at": "create#1:committed", "for_s": 1}]}, "kills or freezes"),
        ({"steps": [SUBMIT, {"at": 1, "do": "kill", "worker": "w1"}]}, "kills or freezes"),
        ({"steps": [SUBMIT, {"at": 1, "do": "cancel", "operation": "op-1"}]}, "to cancel"),
        ({"workers": 2}, "several workers"),
    ],
)
@pytest.mark.parametrize("dialect", ["jobs", "openai-batch"])
def test_patched_code_is_not_part_of_stories_about_its_machine(more: dict[str, Any], reason: str, dialect: str) -> None:
    assert reason in (why_not_patched(story(**more), Marks(dialect=dialect, capabilities=frozenset())) or "")


def test_a_story_the_dialect_has_words_for_is_told_as_it_stands() -> None:
    scenario = story(ends={"op-1": ["succeeded"]})
    assert retold(scenario, "jobs") is scenario


def test_another_story_is_told_under_the_dialects_contract_and_its_own_promises() -> None:
    told = retold(story(contract={"cancel": {"takes_s": 3}}, ends={"op-1": ["succeeded"]}), "openai-batch")
    assert told is not None
    assert (told.contract.cancel.takes_s, told.contract.cancel.method) == (3, "post")
    assert told.contract.idempotency.mechanism == "none"
    assert not told.ends, "they were expected under another contract"


@pytest.mark.parametrize(
    "contract",
    [
        {"create_answer": "synchronous"},
        {"result": {"kind": "signed_url"}},
        {"status": {"words": {"succeeded": "done"}}},
        "azure-like",
        "aip-like",
    ],
)
def test_a_story_about_what_the_dialect_cannot_promise_is_left_out(contract: Any) -> None:
    assert retold(story(contract=contract), "openai-batch") is None
    assert "promises" in (why_not_patched(story(contract=contract), OPENAI) or "")


@pytest.mark.parametrize(
    "fault",
    [{"kind": "token_forgotten", "at": "create#1:committed"}, {"kind": "answer_lost", "at": "create#2:committed"}],
)
def test_a_fault_at_a_second_create_is_left_out_where_nobody_may_make_one(fault: dict[str, Any]) -> None:
    assert "a create sent again" in (why_not_patched(story(faults=[fault]), OPENAI) or "")
    assert why_not_patched(story(faults=[fault]), Marks(dialect="jobs", capabilities=frozenset())) is None
