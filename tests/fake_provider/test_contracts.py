"""Each promise a contract can make is kept, and contracts that contradict themselves are refused."""

from __future__ import annotations

import asyncio
import json
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from pydantic import ValidationError

from fake_provider.contract import Contract
from fake_provider.dialects import DIALECTS
from fake_provider.facts import AnswerEnded, CancelTaken, JobCreated, JobMoved
from fake_provider.presets import PRESETS, UnknownPreset, preset
from fake_provider.work import Work

if TYPE_CHECKING:
    from tests.fake_provider.conftest import Jobs, Play, World

SLOW_FIRST = {"kind": "slow_answer", "at": "create#1:received", "seconds": 0.5}


# -- idempotency


def test_a_replay_shows_the_first_answer_once_more(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        first = await jobs.create()
        await asyncio.sleep(3)
        again = await jobs.create()
        assert (again.status_code, again.content) == (first.status_code, first.content)
        assert again.headers["Idempotency-Replayed"] == "true"
        assert "Idempotency-Replayed" not in first.headers

    assert play(story).of(AnswerEnded)[1].replayed


def test_a_replay_shows_the_current_state_where_the_contract_says_so(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        await jobs.create()
        await asyncio.sleep(3)
        again = await jobs.create()
        assert again.json()["status"] == "succeeded"
        assert "Idempotency-Replayed" not in again.headers

    play(story, contract={"idempotency": {"replays": "current_state", "replays_marked": False}})


@pytest.mark.parametrize(
    ("other_body", "status", "jobs_made"), [("reject_422", 422, 1), ("replay_old", 202, 1), ("create_new", 202, 2)]
)
def test_a_known_key_with_another_body(play: Play, other_body: str, status: int, jobs_made: int) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        await jobs.create("op-1")
        other = await jobs.create("op-2")
        assert other.status_code == status
        assert (await jobs.create("op-2")).status_code == status, "and so again"

    world = play(story, contract={"idempotency": {"other_body": other_body}})
    assert len(world.jobs) == jobs_made


def test_a_body_that_means_the_same_is_the_same_body(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        for body in (b'{"kind":"x","parameters":{"a":1,"b":2}}', b'{ "parameters": {"b":2, "a":1}, "kind": "x" }'):
            answer = await jobs.client.post("/v1/jobs", content=body, headers={"Idempotency-Key": "k"})
            assert answer.status_code == 202

    assert len(play(story).jobs) == 1


async def _two_at_once(jobs: Jobs, second: str = "op-1") -> list[httpx2.Response]:
    return list(await asyncio.gather(jobs.create("op-1"), jobs.create(second)))


def test_a_key_in_flight_conflicts(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        first, second = await _two_at_once(jobs)
        assert (first.status_code, second.status_code) == (202, 409)
        assert second.json()["type"].endswith("/request-in-progress")
        assert (await jobs.create()).json()["id"] == first.json()["id"]

    assert len(play(story, SLOW_FIRST).jobs) == 1


def test_a_mismatch_is_noticed_before_a_conflict(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        _, second = await _two_at_once(jobs, "op-2")
        assert second.status_code == 422

    play(story, SLOW_FIRST)


def test_a_key_in_flight_is_waited_for(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        first, second = await _two_at_once(jobs)
        assert world.elapsed == 0.5
        assert first.json()["id"] == second.json()["id"]
        assert second.headers["Idempotency-Replayed"] == "true"

    play(story, SLOW_FIRST, contract={"idempotency": {"in_flight": "wait"}})


def test_who_waits_for_a_request_that_comes_to_nothing_takes_its_place(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        first, second = await asyncio.gather(jobs.create(), jobs.create(), return_exceptions=True)
        assert isinstance(first, httpx2.ReadError)
        assert isinstance(second, httpx2.Response)
        assert "Idempotency-Replayed" not in second.headers

    world = play(
        story,
        {"kind": "slow_answer", "at": "create#1:received", "seconds": 0.5},
        {"kind": "server_error", "at": "create#1:received"},
        {"kind": "connection_reset", "at": "create#1:committed"},
        contract={"idempotency": {"in_flight": "wait"}},
    )
    assert len(world.jobs) == 1
    assert world.of(JobCreated)[0].exchange == 2


def test_a_key_in_flight_is_replayed(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        first, second = await _two_at_once(jobs)
        assert first.json()["id"] == second.json()["id"]

    assert len(play(story, SLOW_FIRST, contract={"idempotency": {"in_flight": "replay"}}).jobs) == 1


def test_a_key_lives_as_long_as_promised(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        first = await jobs.created()
        await asyncio.sleep(9)
        assert await jobs.created() == first
        await asyncio.sleep(1)
        assert await jobs.created() != first

    play(story, contract={"idempotency": {"key_lifetime_s": 10}})


def test_a_key_is_one_credentials_own(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        first = await jobs.created()
        other = await jobs.create(headers={"Authorization": "Bearer somebody-else"})
        assert other.json()["id"] != first

    play(story)


def test_a_key_in_the_body(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        body = {"kind": "x", "request_id": "r-1"}
        first = await jobs.create(key=None, body=body)
        assert (await jobs.create(key="a header means nothing here", body=body)).json()["id"] == first.json()["id"]
        assert (await jobs.create(key="k", body={"kind": "x"})).status_code == 400
        assert (await jobs.create(key=None, body={"kind": "x", "request_id": 7})).status_code == 400

    world = play(story, contract={"idempotency": {"mechanism": "body_field"}})
    assert world.of(JobCreated)[0].token == "r-1"


@pytest.mark.parametrize(("required", "status"), [(True, 400), (False, 202)])
def test_a_create_without_a_key(play: Play, required: bool, status: int) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        assert (await jobs.create(key=None)).status_code == status
        assert (await jobs.create(key=None)).status_code == status

    world = play(story, contract={"idempotency": {"required": required}})
    assert len(world.jobs) == (0 if required else 2)


def test_without_idempotency_each_create_is_a_job(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        await jobs.create()
        await jobs.create()

    assert len(play(story, contract={"idempotency": {"mechanism": "none"}}).jobs) == 2


# -- look-up


@pytest.mark.parametrize(
    ("by", "query", "headers"),
    [
        ("by_client_reference", {"client_reference": "op-1"}, {}),
        ("by_operation_id", {"operation_id": "o-1"}, {"X-Client-Operation-Id": "o-1"}),
        ("recent_by_request_id", {"request_id": "key-1"}, {}),
    ],
)
def test_a_job_is_found_by_what_the_contract_offers_and_by_nothing_else(
    play: Play, by: str, query: dict[str, str], headers: dict[str, str]
) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        job = (await jobs.create(headers=headers)).json()["id"]
        assert [found["id"] for found in (await jobs.look_up(**query)).json()["jobs"]] == [job]
        assert (await jobs.look_up(**dict.fromkeys(query, "something else"))).json() == {"jobs": []}
        others = {"client_reference", "operation_id", "request_id"} - set(query)
        for other in sorted(others):
            assert (await jobs.look_up(**{other: "op-1"})).status_code == 404

    play(story, contract={"lookup": {"by": by}})


def test_a_look_up_lags(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        await jobs.create()
        assert (await jobs.look_up(client_reference="op-1")).json() == {"jobs": []}
        await asyncio.sleep(5)
        assert len((await jobs.look_up(client_reference="op-1")).json()["jobs"]) == 1

    play(story, contract={"lookup": {"authoritative": False, "lag_s": 5}})


def test_no_look_up_at_all(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        assert (await jobs.look_up(client_reference="op-1")).status_code == 404

    play(story, contract={"lookup": {"by": "none"}})


# -- create


@pytest.mark.parametrize(("answer", "status"), [("accepted_202", 202), ("created_201", 201), ("ok_200", 200)])
def test_a_create_is_answered_as_promised(play: Play, answer: str, status: int) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        created = await jobs.create()
        assert (created.status_code, created.json()["status"]) == (status, "queued")
        assert created.headers["Location"] == f"http://provider.test/v1/jobs/{created.json()['id']}"
        assert created.headers["X-Request-Id"].startswith("req_")

    play(story, contract={"create_answer": answer})


def test_a_synchronous_create_holds_the_result(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        created = await jobs.create()
        assert (created.status_code, created.json()["status"]) == (200, "succeeded")
        assert len(created.json()["result"]["inline"]["records"]) == 3
        assert (await jobs.status(created.json()["id"])).json()["status"] == "succeeded"

    world = play(story, contract={"create_answer": "synchronous"})
    assert world.of(JobCreated)[0].synchronous
    assert [moved.after for moved in world.of(JobMoved)] == ["running", "succeeded"]


def test_a_synchronous_create_may_fail(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        created = (await jobs.create()).json()
        assert (created["status"], created["error"]["message"]) == ("failed", "no such account")

    work = {"op-1": Work(outcome="failed", error="no such account")}
    play(story, contract={"create_answer": "synchronous"}, work=work)


# -- status


def test_retry_after_in_seconds_while_unfinished(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        created = await jobs.create()
        assert created.headers["Retry-After"] == "4"
        await asyncio.sleep(3)
        assert "Retry-After" not in (await jobs.status(created.json()["id"])).headers

    world = play(story, contract={"status": {"retry_after_s": 4}})
    assert [ended.retry_after_s for ended in world.of(AnswerEnded)] == [4, None]


def test_retry_after_as_a_date_beside_the_date_of_the_answer(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        await asyncio.sleep(0.25)
        created = await jobs.create()
        due = parsedate_to_datetime(created.headers["Retry-After"]).timestamp()
        assert due == int(world.clock.now()) + 5, "never before the promised delay, to the whole second"
        assert parsedate_to_datetime(created.headers["Date"]).timestamp() == int(world.clock.now())

    world = play(story, contract={"status": {"retry_after": "http_date", "retry_after_s": 4}})
    assert world.of(AnswerEnded)[0].retry_after_s == 4.75


def test_no_retry_after(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        assert "Retry-After" not in (await jobs.create()).headers

    play(story, contract={"status": {"retry_after": "none"}})


def test_progress_grows_and_is_100_at_the_end_only(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        job = await jobs.created()
        seen = []
        for _ in range(5):
            told = (await jobs.status(job)).json()
            seen.append((told["status"], told["progress"]))
            await asyncio.sleep(1)
        assert seen[:3] == [("queued", 0), ("running", 0), ("running", 50)]
        assert seen[3:] == [("succeeded", 100)] * 2

    play(story, work={"default": Work(queued_s=1, takes_s=2)})


def test_no_progress_where_none_is_promised(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        assert (await jobs.create()).json()["progress"] is None

    play(story, contract={"status": {"progress": False}})


# -- cancel


def test_states_are_told_in_the_words_of_the_contract(play: Play) -> None:
    words = {"queued": "waiting", "running": "working", "cancelling": "stopping", "cancelled": "stopped"}

    async def story(world: World, jobs: Jobs) -> None:
        answer = await jobs.create()
        job = answer.json()["id"]
        assert answer.json()["status"] == "waiting"
        await asyncio.sleep(1)
        assert (await jobs.look_up(client_reference="op-1")).json()["jobs"][0]["status"] == "working"
        assert (await jobs.cancel(job)).json()["status"] == "stopping"
        await asyncio.sleep(1)
        assert (await jobs.status(job)).json()["status"] == "stopped"

    contract = {"status": {"words": words}, "webhooks": {"enabled": True}}
    world = play(story, contract=contract, work={"default": Work(queued_s=0.5, takes_s=9)})
    told = [(ended.remote_state, ended.canonical_state) for ended in world.of(AnswerEnded)]
    assert told == [
        ("waiting", "queued"),
        ("working", "running"),
        ("stopping", "cancelling"),
        ("stopped", "cancelled"),
    ]
    ((_, attempt),) = world.received
    event = json.loads(attempt.body)
    assert (event["type"], event["data"]["status"]) == ("job.cancelled", "stopped")


def test_the_document_of_a_provider_lists_its_words() -> None:
    document = DIALECTS["jobs"].openapi(preset("azure-like"), "http://provider.test")
    words = document["components"]["schemas"]["Job"]["properties"]["status"]["enum"]
    assert words == ["NotStarted", "Running", "Canceling", "Succeeded", "Failed", "Canceled"]


def test_a_confirmed_cancel_is_done_when_it_is_answered(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        answer = await jobs.cancel(await jobs.created())
        assert (answer.status_code, answer.json()["status"]) == (200, "cancelled")

    assert play(story, contract={"cancel": {"effect": "confirmed"}}).of(CancelTaken)[0].effect == "cancelled"


def test_an_accepted_cancel_is_done_later(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        job = await jobs.created()
        answer = await jobs.cancel(job)
        assert (answer.status_code, answer.json()["status"]) == (202, "cancelling")
        await asyncio.sleep(0.5)
        assert (await jobs.status(job)).json()["status"] == "cancelled"

    world = play(story)
    assert world.times[world.facts.index(world.of(JobMoved)[-1])] == 0.5


@pytest.mark.parametrize(("takes_s", "end"), [(0.4, "succeeded"), (0.5, "succeeded"), (0.6, "cancelled")])
def test_a_job_that_ends_first_is_not_cancelled(play: Play, takes_s: float, end: str) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        job = await jobs.created()
        await jobs.cancel(job)
        await asyncio.sleep(1)
        assert (await jobs.status(job)).json()["status"] == end

    play(story, work={"default": Work(takes_s=takes_s)})


def test_a_best_effort_cancel_may_be_ignored(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        job = await jobs.created()
        answer = await jobs.cancel(job)
        assert (answer.status_code, answer.json()["status"]) == (202, "cancelling")
        assert (await jobs.status(job)).json()["status"] == "running"

    world = play(story, contract={"cancel": {"effect": "best_effort"}}, work={"default": Work(heeds_cancel=False)})
    assert world.of(CancelTaken)[0].effect == "ignored"


def test_jobs_that_cannot_be_cancelled(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        answer = await jobs.cancel(await jobs.created())
        assert (answer.status_code, answer.headers["Allow"]) == (405, "GET")

    play(story, contract={"cancel": {"effect": "unsupported"}})


@pytest.mark.parametrize(("finished", "status"), [("conflict_409", 409), ("ok_200", 200), ("not_found_404", 404)])
def test_a_cancel_of_a_finished_job(play: Play, finished: str, status: int) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        job = await jobs.created()
        await asyncio.sleep(3)
        assert (await jobs.cancel(job)).status_code == status

    world = play(story, contract={"cancel": {"finished": finished}})
    assert world.of(CancelTaken)[0].effect == "already_terminal"


@pytest.mark.parametrize(("repeatable", "status"), [(True, 202), (False, 409)])
def test_a_second_cancel(play: Play, repeatable: bool, status: int) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        job = await jobs.created()
        await jobs.cancel(job)
        assert (await jobs.cancel(job)).status_code == status

    play(story, contract={"cancel": {"repeatable": repeatable}})


def test_a_cancel_by_post(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        job = await jobs.created()
        assert (await jobs.cancel(job)).status_code == 405
        assert (await jobs.client.post(f"/v1/jobs/{job}/cancel")).status_code == 202

    play(story, contract={"cancel": {"method": "post"}})


def test_a_cancelled_job_tells_of_partial_effects(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        job = await jobs.created()
        await jobs.cancel(job)
        assert (await jobs.status(job)).json()["partial_effects"] == ["bucket"]

    play(
        story,
        contract={"cancel": {"effect": "confirmed"}},
        work={"default": Work(partial_effects=("bucket",))},
    )


# -- result


def test_an_inline_result(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        job = await jobs.created()
        await asyncio.sleep(3)
        result = (await jobs.status(job)).json()["result"]
        assert "href" not in result
        assert [row["status"] for row in result["inline"]["records"]] == ["ok", "failed"]
        assert (result["records"], result["failed"]) == (2, 1)
        assert (await jobs.result(job)).status_code == 404

    play(story, contract={"result": {"kind": "inline"}}, work={"default": Work(records=2, failed_items=1)})


def test_a_signed_url_works_until_it_expires_and_a_new_one_is_to_be_had(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        job = await jobs.created()
        await asyncio.sleep(3)
        href = (await jobs.status(job)).json()["result"]["href"]
        jobs.client.headers.pop("Authorization")
        assert (await jobs.client.get(href)).status_code == 200, "it is its own credential"
        assert (await jobs.client.get(href.replace("signature=", "signature=0"))).status_code == 403
        await asyncio.sleep(60)
        gone = await jobs.client.get(href)
        assert (gone.status_code, gone.json()["type"].rsplit("/", 1)[1]) == (410, "link-expired")
        jobs.client.headers["Authorization"] = "Bearer test"
        fresh = (await jobs.status(job)).json()["result"]["href"]
        assert (await jobs.client.get(fresh)).status_code == 200
        assert (await jobs.result(job)).status_code == 403

    play(story, contract={"result": {"kind": "signed_url"}})


def test_a_one_time_result_is_gone_even_if_its_answer_was_lost(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        job = await jobs.created()
        await asyncio.sleep(3)
        with pytest.raises(httpx2.ReadTimeout):
            await jobs.result(job)
        assert (await jobs.result(job)).status_code == 410

    play(story, {"kind": "answer_lost", "at": "result#1:committed"}, contract={"result": {"kind": "one_time"}})


def test_a_result_states_no_more_than_was_promised(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        job = await jobs.created()
        await asyncio.sleep(3)
        stated = (await jobs.status(job)).json()["result"]
        assert sorted(stated) == ["content_type", "href"]
        assert "Content-Digest" not in (await jobs.result(job)).headers

    play(story, contract={"result": {"checksum": False, "size": False, "record_count": False}})


@pytest.mark.parametrize(("partial", "records"), [(True, 5), (False, None)])
def test_a_cancelled_job_keeps_what_it_had_done_where_the_contract_says_so(
    play: Play, partial: bool, records: int | None
) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        job = await jobs.created()
        await asyncio.sleep(1)
        told = (await jobs.cancel(job)).json()
        assert told["status"] == "cancelled"
        assert (told["result"] or {}).get("records") == records
        answer = await jobs.result(job)
        assert answer.status_code == (200 if partial else 410)
        assert not partial or [row["id"] for row in answer.json()["records"]] == [f"r{n}" for n in range(1, 6)]

    contract = {"cancel": {"effect": "confirmed"}, "result": {"partial": partial}}
    play(story, contract=contract, work={"default": Work(records=10, takes_s=2)})


def test_a_job_whose_time_is_over_fails_and_says_so(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        job = await jobs.created()
        await asyncio.sleep(2.9)
        assert (await jobs.status(job)).json()["status"] == "running"
        await asyncio.sleep(0.2)
        told = (await jobs.status(job)).json()
        assert (told["status"], told["error"]["code"], told["result"]) == ("failed", "expired", None)

    world = play(story, contract={"time_limit_s": 3}, work={"default": Work(takes_s=9)})
    assert [(moved.after, moved.cause) for moved in world.of(JobMoved)][-1] == ("failed", "expiry")


def test_a_job_that_a_fault_held_back_past_its_time_fails_once_that_is_healed(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        job = await jobs.created()
        await jobs.cancel(job)
        await asyncio.sleep(9)
        world.boundary.plan.heal()
        await asyncio.sleep(1)
        assert (await jobs.status(job)).json()["status"] in {"failed", "cancelled"}

    fault = {"kind": "cancel_never_confirmed", "at": "cancel#1:received"}
    play(story, fault, contract={"time_limit_s": 3}, work={"default": Work(takes_s=60)})


def test_a_result_of_a_job_that_has_none(play: Play) -> None:
    async def story(world: World, jobs: Jobs) -> None:
        job = await jobs.created()
        assert (await jobs.result(job)).status_code == 409
        await asyncio.sleep(3)
        assert (await jobs.result(job)).status_code == 410

    play(story, work={"default": Work(outcome="failed")})


# -- contracts themselves


@pytest.mark.parametrize(
    ("contract", "complaint"),
    [
        ({"create_answer": "synchronous", "webhooks": {"enabled": True}}, "a synchronous create has no webhooks"),
        ({"create_answer": "synchronous", "time_limit_s": 5}, "a synchronous create takes no time"),
        ({"lookup": {"lag_s": 1}}, "a look-up with a lag cannot be authoritative"),
        ({"lookup": {"by": "none", "authoritative": False, "lag_s": 1}}, "there is no look-up to lag"),
        (
            {"lookup": {"by": "recent_by_request_id"}, "idempotency": {"mechanism": "none"}},
            "needs an idempotency mechanism",
        ),
        ({"idempotency": {"key_lifetime_s": 0}}, "greater than 0"),
        ({"cancel": {"effect": "sometimes"}}, "best_effort"),
        ({"retries": 3}, "Extra inputs are not permitted"),
        ({"status": {"words": {"queued": "on", "running": "On"}}}, "queued and running are both told as 'On'"),
        (
            {"status": {"words": {"failed": "DONE", "succeeded": "done"}}},
            "succeeded and failed are both told as 'DONE'",
        ),
        (
            {"status": {"words": {"running": "Succeeded", "succeeded": "done"}}},
            "running is told as 'Succeeded', which everybody takes for succeeded",
        ),
        ({"status": {"words": {"failed": ""}}}, "should match pattern"),
        ({"status": {"words": {"failed": None}}}, "valid string"),
        ({"status": {"words": {"expired": "expired"}}}, "Extra inputs are not permitted"),
    ],
)
def test_a_contract_that_contradicts_itself_is_refused_with_the_reason(contract: Any, complaint: str) -> None:
    with pytest.raises(ValidationError, match=complaint):
        Contract.model_validate(contract)


def test_work_that_the_contract_does_not_allow_is_refused(play: Play) -> None:
    with pytest.raises(ValueError, match="'op-1' has heeds_cancel: false, which only a contract with"):
        play.world(work={"op-1": Work(heeds_cancel=False)})


@pytest.mark.parametrize(
    ("work", "complaint"),
    [
        ({"records": 1, "failed_items": 2}, r"failed_items \(2\) is part of records \(1\)"),
        ({"error": "x"}, "an error belongs to a failed job"),
        ({"takes_s": -1}, "greater than or equal to 0"),
        ({"take_s": 1}, "Extra inputs"),
    ],
)
def test_work_that_does_not_add_up_is_refused(work: Any, complaint: str) -> None:
    with pytest.raises(ValidationError, match=complaint):
        Work.model_validate(work)


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_goes_from_create_to_result(play: Play, name: str) -> None:
    contract = preset(name)
    assert Contract.model_validate(contract.model_dump(mode="json")) == contract

    async def story(world: World, jobs: Jobs) -> None:
        body = {"kind": "report", "client_reference": "op-1", "request_id": "r-1"}
        job = (await jobs.create(body=body)).json()["id"]
        await asyncio.sleep(3)
        told = (await jobs.status(job)).json()
        assert told["status"] == contract.status.words.succeeded
        if "href" in told["result"]:
            assert (await jobs.client.get(told["result"]["href"])).status_code == 200

    play(story, contract=contract)


def test_an_unknown_preset_is_refused_with_the_likeliest_one() -> None:
    with pytest.raises(UnknownPreset, match=r"one of careful, stripe-like.*did you mean 'azure-like'"):
        preset("azurelike")


def test_a_contract_is_told_by_what_it_differs_in() -> None:
    """It stands in each failing example that Hypothesis prints."""
    assert repr(Contract()) == "Contract()"
    told = Contract.model_validate({"idempotency": {"required": False}, "create_answer": "ok_200"})
    assert (
        repr(told) == "Contract(idempotency=Idempotency(required=False), create_answer=<CreateAnswer.OK_200: 'ok_200'>)"
    )
