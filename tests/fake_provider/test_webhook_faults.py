"""What goes wrong with webhooks, and the schedule that goes on regardless."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from freezegun import freeze_time
from standardwebhooks import Webhook, WebhookVerificationError

from fake_provider.boundary import Boundary
from fake_provider.contract import Contract
from fake_provider.facts import EventDelivered, EventSent, JobCreated
from fake_provider.work import Work

if TYPE_CHECKING:
    from fake_provider.engine import Attempt
    from tests.fake_provider.conftest import Jobs, Play, World

HOOKS: dict[str, Any] = {"webhooks": {"enabled": True}}
WITH_PROGRESS: dict[str, Any] = {"webhooks": {"enabled": True, "progress_events": True}}
SECRET = "whsec_" + "c2VjcmV0" * 4
WAITS_FOR_ALL_S = 60


async def one_job(world: World, jobs: Jobs) -> None:
    await jobs.created()
    await asyncio.sleep(WAITS_FOR_ALL_S)


def _verify(world: World, number: int) -> Any:
    """Verify one delivery as a client does, at the time it came."""
    at, attempt = world.received[number]
    with freeze_time(datetime.fromtimestamp(world.clock.now() - world.elapsed + at, UTC)):
        return Webhook(SECRET).verify(attempt.body, attempt.headers)


def _types(world: World) -> list[str]:
    return [attempt.type for _, attempt in world.received]


def _times(world: World) -> list[float]:
    return [at for at, _ in world.received]


def _ids(world: World) -> set[str]:
    return {attempt.event for _, attempt in world.received}


def test_the_end_of_a_job_is_told_when_it_comes(play: Play) -> None:
    world = play(one_job, contract=HOOKS)
    assert [(at, attempt.type) for at, attempt in world.received] == [(2, "job.succeeded")]
    told = _verify(world, 0)
    assert told["type"] == "job.succeeded"
    assert told["data"]["id"] == world.jobs[0]
    assert told["data"]["result"]["href"].startswith("http://provider.test/")
    (sent,), (delivered,) = world.of(EventSent), world.of(EventDelivered)
    assert (sent.event, sent.genuine) == (world.received[0][1].headers["webhook-id"], True)
    assert (delivered.status, delivered.worker) == (200, "w1")


def test_the_start_of_a_job_is_told_where_the_contract_says_so(play: Play) -> None:
    world = play(one_job, contract=WITH_PROGRESS)
    assert _types(world) == ["job.running", "job.succeeded"]


def test_a_contract_without_webhooks_sends_none(play: Play) -> None:
    assert play(one_job).received == []


def test_a_delivery_that_fails_is_tried_again_with_the_same_id_and_a_new_timestamp(play: Play) -> None:
    world = play(one_job, contract=HOOKS, receiver=[500, 302, None])
    assert _times(world) == [2, 3, 5, 9]
    assert len(_ids(world)) == 1
    assert [sent.attempt for sent in world.of(EventSent)] == [1, 2, 3, 4]
    stamps = [int(attempt.headers["webhook-timestamp"]) for _, attempt in world.received]
    assert [stamp - stamps[0] for stamp in stamps] == [0, 1, 3, 7]
    for number in range(4):
        _verify(world, number)


def test_the_schedule_ends(play: Play) -> None:
    world = play(one_job, contract=HOOKS, receiver=[500] * 10)
    assert len(world.received) == 4


def test_gone_ends_all_deliveries(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        await one_job(world, jobs)
        await jobs.created("op-2", key="key-2")
        await asyncio.sleep(WAITS_FOR_ALL_S)

    assert len(play(story, contract=HOOKS, receiver=[410]).received) == 1


def test_a_receiver_that_does_not_answer_in_time_is_tried_again_and_slows_nobody(play: Play) -> None:
    world = play.world(contract={"webhooks": {"enabled": True, "timeout_s": 10, "retry_delays_s": [1]}})
    asked: list[float] = []

    async def never(attempt: Attempt) -> int | None:
        asked.append(world.elapsed)
        await asyncio.sleep(3_600)
        return 200

    world.engine._deliver = never

    async def story(world: World) -> None:
        async with world.client() as client:
            created = await client.post("/v1/jobs", json={"kind": "x"}, headers={"Idempotency-Key": "k"})
            await asyncio.sleep(3)
            assert (await client.get(created.headers["Location"])).json()["status"] == "succeeded"
            await asyncio.sleep(WAITS_FOR_ALL_S)

    world.run(story)
    assert asked == [2, 13]
    assert [delivered.status for delivered in world.of(EventDelivered)] == [None, None]


def test_a_delivery_is_lost_and_tried_again(play: Play) -> None:
    world = play(one_job, {"kind": "webhook_lost", "at": "webhook#1:before_receipt"}, contract=HOOKS)
    assert _times(world) == [3]
    assert [delivered.status for delivered in world.of(EventDelivered)] == [None, 200]


def test_a_delivery_is_lost_for_good(play: Play) -> None:
    fault = {"kind": "webhook_lost", "at": "webhook#1:before_receipt", "for_good": True}
    assert play(one_job, fault, contract=HOOKS).received == []


def test_a_delivery_is_late_with_the_timestamp_of_its_sending(play: Play) -> None:
    fault = {"kind": "webhook_late", "at": "webhook#1:before_receipt", "seconds": 7}
    world = play(one_job, fault, contract=HOOKS)
    assert _times(world) == [9]
    stamp = int(world.received[0][1].headers["webhook-timestamp"])
    assert stamp == world.clock.now() - world.elapsed + 2


def test_a_delivery_comes_twice_with_one_id(play: Play) -> None:
    world = play(one_job, {"kind": "webhook_twice", "at": "webhook#1:delivered"}, contract=HOOKS)
    assert _times(world) == [2, 2]
    assert len(_ids(world)) == 1


def test_a_delivery_comes_dozens_of_times_at_most_as_often_as_planned(play: Play) -> None:
    fault = {"kind": "webhook_twice", "at": "webhook#*:delivered"}
    assert len(play(one_job, fault, contract=HOOKS).received) == 2, "the extra copy is not doubled again"


def test_a_delivery_is_overtaken(play: Play) -> None:
    fault = {"kind": "webhook_out_of_order", "at": "webhook#1:before_receipt"}
    world = play(one_job, fault, contract=WITH_PROGRESS)
    assert _types(world) == ["job.succeeded", "job.running"]
    assert world.struck == ["webhook_out_of_order"]


def test_a_delivery_that_was_overtaken_is_struck_no_more(play: Play) -> None:
    world = play(
        one_job,
        {"kind": "webhook_out_of_order", "at": "webhook#1:before_receipt"},
        {"kind": "webhook_lost", "at": "webhook#3:before_receipt"},
        contract=WITH_PROGRESS,
    )
    assert world.struck == ["webhook_out_of_order"]
    assert _types(world) == ["job.succeeded", "job.running"]


def test_a_delivery_that_nothing_overtakes_goes_out_when_healed_and_was_not_struck(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        await one_job(world, jobs)
        assert world.received == []
        world.boundary.plan.heal()
        await asyncio.sleep(1)

    world = play(story, {"kind": "webhook_out_of_order", "at": "webhook#1:before_receipt"}, contract=HOOKS)
    assert _types(world) == ["job.succeeded"]
    assert world.struck == []


@pytest.mark.parametrize(("kind", "said"), [("webhook_too_old", "too old"), ("webhook_too_new", "too new")])
def test_a_timestamp_is_out_of_tolerance_under_a_valid_signature(play: Play, kind: str, said: str) -> None:
    world = play(one_job, {"kind": kind, "at": "webhook#1:before_receipt"}, contract=HOOKS)
    skewed = [sent.skew_s for sent in world.of(EventSent)]
    assert (skewed[0] < -300) == (kind == "webhook_too_old")
    assert (skewed[0] > 300) == (kind == "webhook_too_new")
    with pytest.raises(WebhookVerificationError, match=said):
        _verify(world, 0)
    _, attempt = world.received[0]
    stamp = int(attempt.headers["webhook-timestamp"])
    with freeze_time(datetime.fromtimestamp(stamp, UTC)):
        Webhook(SECRET).verify(attempt.body, attempt.headers)


def test_a_secret_is_being_rotated(play: Play) -> None:
    fault = {"kind": "webhook_secret_rotated", "at": "webhook#1:before_receipt"}
    world = play(one_job, fault, contract=HOOKS)
    _verify(world, 0)
    assert len(world.received[0][1].headers["webhook-signature"].split(" ")) == 2


def test_every_secret_signs(play: Play) -> None:
    old, new = "whsec_" + "b2xk" * 8, "whsec_" + "bmV3" * 8
    world = play.world(contract=HOOKS)
    world.boundary.mail.outbox._secrets = (new, old)

    async def story(world: World) -> None:
        async with world.client() as client:
            await client.post("/v1/jobs", json={"kind": "x"}, headers={"Idempotency-Key": "k"})
            await asyncio.sleep(3)

    world.run(story)
    at, attempt = world.received[0]
    with freeze_time(datetime.fromtimestamp(world.clock.now() - world.elapsed + at, UTC)):
        Webhook(old).verify(attempt.body, attempt.headers)
        Webhook(new).verify(attempt.body, attempt.headers)


def test_a_stranger_claims_success(play: Play) -> None:
    world = play(one_job, {"kind": "webhook_forged", "at": "create#1:delivered"}, contract=HOOKS)
    assert _times(world) == [0, 2]
    assert json.loads(world.received[0][1].body)["data"]["status"] == "succeeded"
    with pytest.raises(WebhookVerificationError, match="No matching signature"):
        _verify(world, 0)
    assert [sent.genuine for sent in world.of(EventSent)] == [False, True]


def test_a_stranger_signs_nothing(play: Play) -> None:
    fault = {"kind": "webhook_forged", "at": "create#1:delivered", "signature": "none"}
    world = play(one_job, fault, contract=HOOKS)
    assert "webhook-signature" not in world.received[0][1].headers
    with pytest.raises(WebhookVerificationError, match="Missing required headers"):
        _verify(world, 0)
    assert [sent.genuine for sent in world.of(EventSent)] == [False, True]


def test_a_stranger_is_faster_with_the_events_own_id(play: Play) -> None:
    fault = {"kind": "webhook_preempted", "at": "webhook#1:before_receipt", "seconds": 0.5}
    world = play(one_job, fault, contract=HOOKS)
    assert _times(world) == [2, 2.5]
    assert len(_ids(world)) == 1
    with pytest.raises(WebhookVerificationError, match="No matching signature"):
        _verify(world, 0)
    _verify(world, 1)


def test_an_event_is_about_somebody_elses_job(play: Play) -> None:
    world = play(one_job, {"kind": "webhook_for_another_job", "at": "create#1:delivered"}, contract=HOOKS)
    assert _verify(world, 0)["data"]["id"] not in world.jobs


def test_an_event_is_of_an_unknown_type(play: Play) -> None:
    fault = {"kind": "webhook_unknown_type", "at": "create#1:delivered", "type": "job.annotated"}
    world = play(one_job, fault, contract=HOOKS)
    assert _verify(world, 0)["type"] == "job.annotated"
    assert _types(world) == ["job.annotated", "job.succeeded"]


def test_an_event_is_replayed_byte_for_byte_days_later(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        await one_job(world, jobs)
        await asyncio.sleep(3 * 86_400)

    world = play(story, {"kind": "webhook_replayed", "at": "webhook#1:delivered"}, contract=HOOKS)
    (_, first), (later, again) = world.received
    assert later == 2 + 2 * 86_400
    assert (again.headers, again.body) == (first.headers, first.body)
    with pytest.raises(WebhookVerificationError, match="too old"):
        _verify(world, 1)


def test_an_event_comes_before_the_creates_own_answer(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        await jobs.created()
        assert _types(world) == ["job.succeeded"]
        assert _times(world) == [0]
        assert world.elapsed == 0.1

    play(story, {"kind": "webhook_before_answer", "at": "create#1:committed"}, contract=HOOKS)


@pytest.mark.parametrize(
    "kind", ["webhook_forged", "webhook_for_another_job", "webhook_unknown_type", "webhook_before_answer"]
)
def test_without_webhooks_there_is_nothing_to_strike(play: Play, kind: str) -> None:
    point = "committed" if kind == "webhook_before_answer" else "delivered"
    world = play(one_job, {"kind": kind, "at": f"create#1:{point}"})
    assert world.struck == []
    assert world.received == []


def test_webhooks_need_a_secret() -> None:
    from random import Random

    with pytest.raises(ValueError, match="at least one webhook secret"):
        Boundary(Contract.model_validate(HOOKS), base_url="http://x", random=Random(1), record=lambda fact: None)


def test_events_of_a_failed_and_of_a_cancelled_job(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        await jobs.created("fails", key="a")
        job = await jobs.created("is-cancelled", key="b")
        await jobs.cancel(job)
        await asyncio.sleep(WAITS_FOR_ALL_S)

    world = play(story, contract=HOOKS, work={"fails": Work(outcome="failed", takes_s=5)})
    assert _types(world) == ["job.cancelled", "job.failed"]
    assert len(world.of(JobCreated)) == 2
