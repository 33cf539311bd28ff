"""Which scenarios apply to a client."""

from typing import Any, get_args

import pytest

from harness.applicability import why_not
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


def test_every_story_of_the_catalogue_applies_to_a_client_that_can_do_everything() -> None:
    assert [name for name, each in load_catalogue().items() if why_not(each, get_args(Capability))] == []
