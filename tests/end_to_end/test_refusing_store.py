"""A store that fails at every single write in turn: nothing is lost, nothing is sent twice, the worker carries on."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any, cast

import pytest

from harness.rules.registry import Needs, all_rules
from harness.runner import run
from harness.subjects import Subject
from harness.subjects.reference import build_with
from harness.verdict import Verdict
from reference_client.stores.protocol import StoreRefused
from scenarios.model import Scenario

if TYPE_CHECKING:
    from harness.subject import Client, Host
    from reference_client.stores.protocol import OperationStore

WRITES = {"add", "claim", "renew", "commit", "release", "give", "take_event"}
MAX_WRITES = 500
LONGER_THAN_A_LEASE_S = 3.0

HAPPY = {"at": 0, "do": "submit", "operation": "op-1"}
ONE_LOST_ANSWER = [{"kind": "answer_lost", "at": "create#1:committed"}]


def story(name: str, **parts: Any) -> Scenario:
    body = {"name": name, "summary": "A store in trouble.", "requirements": ["W1.2"], "steps": [HAPPY], **parts}
    return Scenario.model_validate({"ends": {"op-1": ["succeeded"]}, "jobs": {"op-1": 1}, **body})


STORIES = [
    story("plain"),
    story("lost-answer", faults=ONE_LOST_ANSWER),
    story("two-workers", workers=2, faults=ONE_LOST_ANSWER),
    story(
        "told-to-stop",
        steps=[HAPPY, {"at": 6, "do": "cancel", "operation": "op-1"}],
        work={"default": {"takes_s": 9}},
        ends={"op-1": ["cancelled", "succeeded"]},  # trouble may keep the stop until the job is done
    ),
    story(
        "webhooks",
        contract={"webhooks": {"enabled": True}},
        faults=[{"kind": "webhook_twice", "at": "webhook#1:delivered"}],
    ),
]
HISTORY_RULES = {rule.id for rule in all_rules() if rule.needs is Needs.HISTORY}


def excused(scenario: Scenario, trouble: Trouble) -> set[str]:
    """Rules that take what they cannot see for a breach: the trouble is not in the history."""
    rules = {"duplicate-webhook-answered-2xx"}  # a store that takes no write tells no duplicate from news
    if trouble.made:
        rules |= HISTORY_RULES  # the write was made, and the note that says so never was
    if scenario.workers > 1 and trouble.lasts_s:
        rules.add("no-create-once-accepted")  # the answer could be stored nowhere before another had the lease
    return rules


class Trouble:
    """One store's bad hour: it begins with the ``nth`` write.

    Args:
        made: whether that write is made, and only its answer lost.
        lasts_s: for how long nothing works from then on.
    """

    def __init__(self, nth: int, *, made: bool, lasts_s: float) -> None:
        self.nth = nth
        self.made = made
        self.lasts_s = lasts_s
        self.writes = 0
        self.struck = ""
        self.over_at = 0.0


class TroubledStore:
    """A store in trouble: it can be read, and takes no write."""

    def __init__(self, inner: OperationStore, trouble: Trouble) -> None:
        self._inner = inner
        self._trouble = trouble

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)
        if name not in WRITES:
            return method

        async def call(*arguments: Any, **options: Any) -> Any:
            trouble, now = self._trouble, await self._inner.now()
            if now < trouble.over_at:
                raise StoreRefused("still no connection")
            trouble.writes += 1
            if trouble.writes != trouble.nth:
                return await method(*arguments, **options)
            trouble.struck = name
            trouble.over_at = now + trouble.lasts_s
            if trouble.made:
                await method(*arguments, **options)
                raise StoreRefused("the connection was lost after the write")
            raise StoreRefused("disk full")

        return call


def subject_in(trouble: Trouble) -> Subject:
    def build(host: Host) -> Client:
        return build_with(host, store=lambda inner: cast("OperationStore", TroubledStore(inner, trouble)))

    return Subject(name="reference", factory=build)


@pytest.mark.parametrize("lasts_s", [0.0, LONGER_THAN_A_LEASE_S], ids=["once", "for-longer-than-a-lease"])
@pytest.mark.parametrize("made", [False, True], ids=["refused", "answer-lost"])
@pytest.mark.parametrize("scenario", STORIES, ids=lambda scenario: scenario.name)
def test_trouble_at_every_single_write_is_survived(scenario: Scenario, *, made: bool, lasts_s: float) -> None:
    struck: set[str] = set()
    for nth in count(1):
        assert nth < MAX_WRITES, "the run never ends"
        trouble = Trouble(nth, made=made, lasts_s=lasts_s)
        result = run(scenario, subject_in(trouble))
        breaches = {each.rule: each.message for each in result.outcome.findings}
        told = (nth, trouble.struck, result.outcome.reason, breaches)
        assert not breaches.keys() - excused(scenario, trouble), told
        assert breaches or result.outcome.verdict is Verdict.PASS, told
        if not trouble.struck:
            assert not breaches, told
            break
        struck.add(trouble.struck)
    assert {"add", "claim", "commit", "release"} <= struck
