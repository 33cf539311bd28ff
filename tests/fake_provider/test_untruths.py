"""A provider that tells what is not so. What the ledger holds stays true."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from fake_provider.facts import AnswerEnded
from fake_provider.presets import preset

if TYPE_CHECKING:
    from tests.fake_provider.conftest import Jobs, Play, World

ENDED_S = 3  # work takes two seconds unless said otherwise


def test_a_job_is_not_found_right_after_it_was_accepted(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        job = await jobs.created()
        assert (await jobs.status(job)).status_code == 404
        assert (await jobs.status(job)).status_code == 200

    world = play(story, {"kind": "not_found_after_accept", "at": "status#1:committed"})
    assert world.of(AnswerEnded)[1].from_fault


def test_a_state_goes_backwards(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        job = await jobs.created()
        assert (await jobs.status(job)).json()["status"] == "queued"
        await asyncio.sleep(ENDED_S)
        told = (await jobs.status(job)).json()
        assert (told["status"], told["result"]) == ("running", None)
        assert (await jobs.status(job)).json()["status"] == "succeeded"

    world = play(story, {"kind": "state_backwards", "at": "status#1:committed", "times": 2})
    assert [ended.canonical_state for ended in world.of(AnswerEnded)] == ["queued", "queued", "running", "succeeded"]


def test_a_state_is_in_no_documentation(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        assert (await jobs.status(await jobs.created())).json()["status"] == "paused"

    world = play(story, {"kind": "unknown_state", "at": "status#1:committed", "word": "paused"})
    ended = world.of(AnswerEnded)[1]
    assert (ended.remote_state, ended.canonical_state) == ("paused", None)


@pytest.mark.parametrize("word", ["succeeded", "Succeeded"])
def test_a_word_that_is_documented_is_no_unknown_state(play: Play, word: str) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        assert (await jobs.status(await jobs.created())).json()["status"] == "Running"

    fault = {"kind": "unknown_state", "at": "status#1:committed", "word": word}
    assert play(story, fault, contract=preset("azure-like")).struck == []


def test_the_end_is_shown_once(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        job = await jobs.created()
        assert (await jobs.status(job)).json()["status"] == "running"
        await asyncio.sleep(ENDED_S)
        assert (await jobs.status(job)).json()["status"] == "succeeded"
        assert (await jobs.status(job)).status_code == 404
        assert (await jobs.result(job)).status_code == 200, "the result is still there for who saw it"
        world.boundary.plan.heal()
        assert (await jobs.status(job)).json()["status"] == "succeeded"

    world = play(story, {"kind": "terminal_shown_once", "at": "status#*:committed"})
    assert world.struck == ["terminal_shown_once"]


def test_progress_is_100_while_the_job_runs(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        told = (await jobs.status(await jobs.created())).json()
        assert (told["status"], told["progress"]) == ("running", 100)

    play(story, {"kind": "progress_100_while_running", "at": "status#1:committed"})


def test_a_replica_answers_with_what_was(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        job = await jobs.created()
        await asyncio.sleep(ENDED_S)
        stale = (await jobs.status(job)).json()
        assert stale["status"] == "queued"
        assert stale["updated_at"] == stale["created_at"]

    play(story, {"kind": "stale_read", "at": "status#1:committed"})


def test_a_replica_knows_nothing_of_a_new_job(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        job = await jobs.created()
        assert (await jobs.look_up(client_reference="op-1")).json() == {"jobs": []}
        assert (await jobs.look_up(client_reference="op-1")).json()["jobs"][0]["id"] == job

    play(story, {"kind": "stale_read", "at": "lookup#1:committed"})


def test_a_read_is_answered_with_another_job(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        job = await jobs.created()
        told = (await jobs.status(job)).json()
        assert (told["status"], told["client_reference"]) == ("succeeded", "somebody-elses")
        assert told["id"] != job
        truth = (await jobs.status(job)).json()
        assert (truth["id"], truth["status"], truth["client_reference"]) == (job, "running", "op-1")

    world = play(story, {"kind": "another_job_shown", "at": "status#1:committed"})
    _, misled, *_ = world.of(AnswerEnded)
    assert misled.job not in {None, world.of(AnswerEnded)[0].job}


def test_the_providers_clock_is_wrong(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        job = await jobs.created()
        skewed = (await jobs.status(job)).json()["created_at"]
        honest = (await jobs.status(job)).json()["created_at"]
        assert (skewed[:10], honest[:10]) == ("2025-12-31", "2026-01-01")

    play(story, {"kind": "provider_clock_skewed", "at": "status#1:committed", "seconds": -3600})


def test_a_replay_names_another_job(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        first = await jobs.created()
        other = await jobs.created()
        assert other != first
        assert (await jobs.status(other)).json()["id"] == other
        assert (await jobs.status(first)).json()["id"] == first

    world = play(story, {"kind": "other_job_for_token", "at": "create#2:committed"})
    assert len(world.jobs) == 1, "it only says so"


def test_a_token_is_forgotten_between_retries(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        assert await jobs.created() != await jobs.created()

    world = play(story, {"kind": "token_forgotten", "at": "create#1:committed"})
    assert len(world.jobs) == 2


def test_a_changed_body_silently_gets_the_old_answer(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        first = await jobs.created("op-1")
        other = await jobs.create("op-2")
        assert other.json()["id"] == first
        assert other.json()["client_reference"] == "op-1"

    play(story, {"kind": "changed_body_accepted", "at": "create#2:received"})


def test_a_legitimate_retry_is_refused(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        await jobs.create()
        assert (await jobs.create()).status_code == 422
        assert (await jobs.create()).status_code == 202

    play(story, {"kind": "retry_refused", "at": "create#2:received"})


def test_a_job_id_is_used_again(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        first = await jobs.created("op-1", key="a")
        assert await jobs.created("op-2", key="b") == first
        assert (await jobs.status(first)).json()["client_reference"] == "op-2"

    world = play(story, {"kind": "job_id_reused", "at": "create#2:received"})
    assert [line.operation for line in world.boundary.ledger(0)] == ["op-1", "op-2"]


def test_a_status_url_is_relative(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        answer = await jobs.create()
        assert answer.headers["Location"] == f"/v1/jobs/{answer.json()['id']}"

    play(story, {"kind": "relative_status_url", "at": "create#1:committed"})


def test_a_status_url_has_moved_to_one_that_works(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        job = await jobs.created()
        moved = await jobs.status(job)
        assert moved.status_code == 308
        assert (await jobs.client.get(moved.headers["Location"])).json()["id"] == job

    play(story, {"kind": "status_url_moved", "at": "status#1:committed"})


@pytest.mark.parametrize(
    ("kind", "at"),
    [
        ("state_backwards", "status#1:committed"),
        ("terminal_shown_once", "status#1:committed"),
        ("stale_read", "status#1:committed"),
        ("other_job_for_token", "create#1:committed"),
        ("changed_body_accepted", "create#1:received"),
        ("retry_refused", "create#1:received"),
        ("job_id_reused", "create#1:received"),
    ],
)
def test_an_untruth_with_nothing_to_be_untrue_about_has_not_struck(play: Play, kind: str, at: str) -> None:
    """A run in which a planned fault did nothing must not pass for one in which it did."""

    async def story(world: World, jobs: Jobs) -> None:
        job = await jobs.created()
        assert (await jobs.status(job)).json()["status"] == "queued"

    from fake_provider.work import Work

    world = play(story, {"kind": kind, "at": at}, work={"default": Work(queued_s=1)})
    assert world.struck == []
    assert world.boundary.plan.struck == 0
    assert [index for index, _ in world.boundary.plan.unstruck()] == [0]
