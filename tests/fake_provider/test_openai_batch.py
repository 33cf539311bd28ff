"""The unmodified ``openai`` package against the ``openai-batch`` dialect: on a socket, and in process through respx."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from random import Random
from typing import Any, Final

import httpx2
import openai
import pytest
from openai import AsyncOpenAI, OpenAI
from openai.types import Batch
from pydantic import TypeAdapter

from fake_provider.boundary import Boundary
from fake_provider.clock import ManualClock, SystemClock
from fake_provider.contract import Cancel as CancelTerms
from fake_provider.contract import CancelMethod, Contract, Webhooks
from fake_provider.dialects import DIALECTS
from fake_provider.engine import Attempt, Engine
from fake_provider.facts import EventSent, FaultStruck, JobCreated, JobMoved, ProviderFact, RequestSent
from fake_provider.faults import AnyFault
from fake_provider.respx_router import ProviderRouter
from fake_provider.server import Server
from fake_provider.work import Work

LIKENESS = DIALECTS["openai-batch"].likeness
SECRET = "whsec_" + "c2VjcmV0" * 4
FAULTS: TypeAdapter[tuple[AnyFault, ...]] = TypeAdapter(tuple[AnyFault, ...])
LINES = [{"custom_id": f"item-{n}", "method": "POST", "url": "/v1/responses", "body": {"n": n}} for n in range(6)]


class Place:
    """A provider that speaks the dialect, its clock, and what it told its webhook receiver."""

    def __init__(
        self,
        *faults: dict[str, Any],
        work: Work | None = None,
        contract: Contract = LIKENESS,
        clock: ManualClock | None = None,
    ) -> None:
        self.facts: list[ProviderFact] = []
        self.received: list[Attempt] = []
        self.clock = clock or ManualClock(1_767_225_600.0)
        self.boundary = Boundary(
            contract,
            dialect="openai-batch",
            base_url="http://provider.test",
            random=Random(1),
            record=self.facts.append,
            work={"default": work or Work()},
            faults=FAULTS.validate_python(faults),
            webhook_secrets=[SECRET],
        )
        self.engine = Engine(self.boundary, self.clock, hosts=self, deliver=self._take)

    async def _take(self, attempt: Attempt) -> int | None:
        self.received.append(attempt)
        return 200

    def kill(self, worker: str) -> None: ...

    def stop(self, worker: str, for_s: float | None) -> None: ...

    def set_clock(self, worker: str, ahead_s: float) -> None: ...

    def is_running(self, worker: str) -> bool:
        return True

    async def pass_time(self, seconds: float) -> None:
        await self.engine.advance(self.clock, seconds)

    @property
    def jobs(self) -> list[str]:
        return [fact.job for fact in self.facts if isinstance(fact, JobCreated)]

    @property
    def creates(self) -> list[RequestSent]:
        return [fact for fact in self.facts if isinstance(fact, RequestSent) and fact.endpoint == "create"]


Story = Callable[[AsyncOpenAI, Place], Awaitable[None]]


async def _on_a_socket(story: Story, place: Place) -> None:
    place.engine.start()
    server = Server(place.engine)
    url = await server.open_port("w1")
    try:
        # Its own retries wait half a second and more: where they are not the point they are off.
        async with AsyncOpenAI(api_key="k", base_url=f"{url}/v1", max_retries=0, webhook_secret=SECRET) as client:
            await story(client, place)
    finally:
        await server.close()
        await place.engine.close()


async def _through_respx(story: Story, place: Place) -> None:
    place.engine.start()
    with ProviderRouter(place.engine, using="httpcore2"):
        url = "http://provider.test/v1"
        async with AsyncOpenAI(api_key="k", base_url=url, max_retries=0, webhook_secret=SECRET) as client:
            await story(client, place)
    await place.engine.close()


@pytest.fixture(params=[_on_a_socket, _through_respx], ids=["socket", "respx"])
def play(request: pytest.FixtureRequest) -> Callable[..., Place]:
    def played(story: Story, *faults: dict[str, Any], **options: Any) -> Place:
        place = Place(*faults, **options)
        asyncio.run(request.param(story, place))
        return place

    return played


async def upload(client: AsyncOpenAI, lines: Sequence[Any] = LINES, purpose: Any = "batch") -> str:
    content = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines).encode()
    kept = await client.files.create(file=("requests.jsonl", content), purpose=purpose)
    return kept.id


async def create(client: AsyncOpenAI, source: str | None = None, **more: Any) -> Batch:
    return await client.batches.create(
        input_file_id=source or await upload(client),
        endpoint="/v1/responses",
        completion_window="24h",
        metadata={"client_reference": "op-1"},
        **more,
    )


async def rows(client: AsyncOpenAI, file: str | None) -> dict[str, int]:
    """Return the status of each item in a result file, in the order of its rows."""
    if file is None:
        return {}
    text = (await client.files.content(file)).text
    read = [json.loads(line) for line in text.splitlines()]
    return {row["custom_id"]: row["response"]["status_code"] for row in read}


def test_a_batch_goes_from_file_to_files(play: Callable[..., Place]) -> None:
    async def story(client: AsyncOpenAI, place: Place) -> None:
        made = await create(client)
        assert (made.object, made.status, made.endpoint) == ("batch", "validating", "/v1/responses")
        assert made.metadata == {"client_reference": "op-1"}
        await place.pass_time(1)
        running = await client.batches.retrieve(made.id)
        assert running.status == "in_progress"
        await place.pass_time(0.9)
        assert (await client.batches.retrieve(made.id)).status == "finalizing"
        await place.pass_time(1)
        done = await client.batches.retrieve(made.id)
        assert done.status == "completed"
        assert done.completed_at == 1_767_225_602
        assert done.request_counts is not None
        assert (done.request_counts.total, done.request_counts.completed, done.request_counts.failed) == (6, 4, 2)
        good, bad = await rows(client, done.output_file_id), await rows(client, done.error_file_id)
        assert good.keys() == {"item-0", "item-1", "item-2", "item-3"}
        assert bad == {"item-4": 400, "item-5": 400}
        assert list(good) != sorted(good), "rows come in an order of their own"
        file = await client.files.retrieve(done.output_file_id or "")
        assert file.purpose == "batch_output"
        assert file.bytes == len((await client.files.content(file.id)).content)

    place = play(story, work=Work(records=3, failed_items=2))
    (ended,) = [fact for fact in place.facts if isinstance(fact, JobMoved) and fact.after == "succeeded"]
    assert (ended.operation, ended.records, ended.failed_items) == ("op-1", 6, 2)


def test_where_every_item_fails_there_is_an_error_file_only(play: Callable[..., Place]) -> None:
    async def story(client: AsyncOpenAI, place: Place) -> None:
        made = await create(client)
        await place.pass_time(3)
        done = await client.batches.retrieve(made.id)
        assert done.output_file_id is None
        assert set((await rows(client, done.error_file_id)).values()) == {400}
        assert (await client.files.retrieve(done.error_file_id or "")).filename.endswith("_error.jsonl")

    play(story, work=Work(records=3, failed_items=3))


@pytest.mark.parametrize("after", [0.0, 0.3, 0.77, 1.5, 2.0])
def test_counts_add_up_at_every_moment(after: float) -> None:
    async def story(client: AsyncOpenAI, place: Place) -> None:
        made = await create(client)
        await place.pass_time(after)
        counts = (await client.batches.retrieve(made.id)).request_counts
        assert counts is not None
        assert counts.total == 6
        assert counts.completed + counts.failed == int(6 * int(after * 50) / 100)

    asyncio.run(_through_respx(story, Place(work=Work(records=6, failed_items=3))))


def test_an_uploaded_file_is_told_of_and_read_back(play: Callable[..., Place]) -> None:
    async def story(client: AsyncOpenAI, place: Place) -> None:
        content = '{"custom_id": "ä", "method": "POST", "url": "/v1/responses", "body": {}}\n'.encode()
        kept = await client.files.create(file=("names.jsonl", content), purpose="batch")
        told = await client.files.retrieve(kept.id)
        assert (told.filename, told.purpose, told.bytes) == ("names.jsonl", "batch", len(content))
        assert (await client.files.content(kept.id)).content == content
        with pytest.raises(openai.NotFoundError):
            await client.files.retrieve("file-0")

    play(story)


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        (["{"], "line 1: this line is not parseable"),
        ([LINES[0], {"method": "POST"}], "line 2: custom_id: missing"),
        ([LINES[0], LINES[0]], "line 2: the custom_id 'item-0' is used already"),
        ([{**LINES[0], "method": "GET"}], "line 1: a request has the method POST"),
        ([], "1 to 50000 requests"),
    ],
)
def test_a_batch_of_a_file_that_is_wrong_fails_and_says_why(lines: list[Any], complaint: str) -> None:
    async def story(client: AsyncOpenAI, place: Place) -> None:
        made = await create(client, await upload(client, lines))
        await place.pass_time(1)
        failed = await client.batches.retrieve(made.id)
        assert failed.status == "failed"
        assert failed.errors is not None
        assert failed.errors.data is not None
        assert complaint in (failed.errors.data[0].message or "")
        assert failed.output_file_id is None

    asyncio.run(_through_respx(story, Place()))


def test_cancelling_is_accepted_and_comes_true(play: Callable[..., Place]) -> None:
    async def story(client: AsyncOpenAI, place: Place) -> None:
        made = await create(client)
        assert (await client.batches.cancel(made.id)).status == "cancelling"
        await place.pass_time(1)
        assert (await client.batches.retrieve(made.id)).status == "cancelled"
        with pytest.raises(openai.ConflictError):
            await client.batches.cancel(made.id)
        with pytest.raises(openai.NotFoundError):
            await client.batches.cancel("batch_0")

    play(story)


@pytest.mark.parametrize(("after_s", "done"), [(0.2, 0), (1.5, 4), (1.9, 5)])
def test_a_batch_that_is_cancelled_keeps_what_it_had_done(
    play: Callable[..., Place], after_s: float, done: int
) -> None:
    async def story(client: AsyncOpenAI, place: Place) -> None:
        made = await create(client)
        await place.pass_time(after_s)
        await client.batches.cancel(made.id)
        await place.pass_time(1)
        cancelled = await client.batches.retrieve(made.id)
        assert cancelled.status == "cancelled"
        counts = cancelled.request_counts
        assert counts is not None
        good, bad = await rows(client, cancelled.output_file_id), await rows(client, cancelled.error_file_id)
        assert (counts.total, counts.completed, counts.failed) == (6, len(good), len(bad))
        assert len(good) + len(bad) == done
        assert (cancelled.output_file_id is None) == (not good)

    # The cancel is carried out at once, so that it is what was done when it came.
    contract = LIKENESS.model_copy(update={"cancel": CancelTerms(method=CancelMethod.POST, takes_s=0)})
    place = play(story, work=Work(records=3, failed_items=2), contract=contract)
    (line,) = place.boundary.ledger(place.clock.now())
    assert (line.state, line.result_sha256) == ("cancelled", None), "it is no result of a job that succeeded"


def test_a_batch_whose_time_is_over_has_expired_and_keeps_what_it_had_done(play: Callable[..., Place]) -> None:
    async def story(client: AsyncOpenAI, place: Place) -> None:
        made = await create(client)
        assert made.expires_at == made.created_at + 3
        await place.pass_time(2.9)
        assert (await client.batches.retrieve(made.id)).status == "in_progress"
        await place.pass_time(0.1)
        expired = await client.batches.retrieve(made.id)
        assert (expired.status, expired.expired_at) == ("expired", made.expires_at)
        assert expired.errors is None
        assert expired.failed_at is None
        assert expired.request_counts is not None
        assert (expired.request_counts.total, expired.request_counts.completed) == (6, 4)
        assert len(await rows(client, expired.output_file_id)) == 4
        (attempt,) = place.received
        assert json.loads(attempt.body)["type"] == "batch.expired"
        with pytest.raises(openai.ConflictError):
            await client.batches.cancel(made.id)

    contract = LIKENESS.model_copy(update={"time_limit_s": 3, "webhooks": Webhooks(enabled=True)})
    place = play(story, work=Work(takes_s=4), contract=contract)
    (ended,) = [fact for fact in place.facts if isinstance(fact, JobMoved) and fact.before == "running"]
    assert (ended.after, ended.cause) == ("failed", "expiry")


def test_a_batch_that_is_done_in_time_does_not_expire() -> None:
    async def story(client: AsyncOpenAI, place: Place) -> None:
        made = await create(client)
        await place.pass_time(9)
        assert (await client.batches.retrieve(made.id)).status == "completed"

    contract = LIKENESS.model_copy(update={"time_limit_s": 2})
    asyncio.run(_through_respx(story, Place(work=Work(takes_s=2), contract=contract)))


@pytest.mark.parametrize("fault", ["answer_lost", "request_lost"])
def test_an_upload_is_struck_and_sent_again(play: Callable[..., Place], fault: str) -> None:
    async def story(client: AsyncOpenAI, place: Place) -> None:
        hasty = client.with_options(timeout=0.05)
        with pytest.raises(openai.APITimeoutError):
            await upload(hasty)
        kept = await upload(client)
        assert (await client.files.retrieve(kept)).status == "processed"

    point = "committed" if fault == "answer_lost" else "received"
    place = play(story, {"kind": fault, "at": f"upload#1:{point}"})
    assert [fact.kind for fact in place.facts if isinstance(fact, FaultStruck)] == [fault]


def test_the_errors_of_a_batch_are_struck_and_its_output_is_not(play: Callable[..., Place]) -> None:
    async def story(client: AsyncOpenAI, place: Place) -> None:
        made = await create(client)
        await place.pass_time(3)
        done = await client.batches.retrieve(made.id)
        assert len(await rows(client, done.output_file_id)) == 4
        errors = done.error_file_id or ""
        with pytest.raises(openai.InternalServerError):
            await client.files.content(errors)
        short = (await client.files.content(errors)).content
        with pytest.raises(openai.NotFoundError):
            await client.files.content(errors)
        whole = (await client.files.content(errors)).content
        assert (short, len(short)) == (whole[: len(short)], len(whole) // 2)

    faults = (
        {"kind": "server_error", "at": "annex#1:received", "status": 502},
        {"kind": "result_cut_short", "at": "annex#2:committed"},
        {"kind": "result_expired", "at": "annex#3:received"},
    )
    place = play(story, *faults, work=Work(records=3, failed_items=2))
    assert len([fact for fact in place.facts if isinstance(fact, FaultStruck)]) == 3


def test_a_fault_at_a_request_that_a_dialect_does_not_have_is_refused() -> None:
    faults = FAULTS.validate_python([{"kind": "answer_lost", "at": "upload#1:committed"}])
    with pytest.raises(ValueError, match="there is no upload here; there is create, status"):
        Boundary(Contract(), base_url="http://provider.test", random=Random(1), record=print, faults=faults)


def test_batches_are_listed_newest_first_a_page_at_a_time(play: Callable[..., Place]) -> None:
    async def story(client: AsyncOpenAI, place: Place) -> None:
        source = await upload(client)
        made = [(await create(client, source)).id for _ in range(5)]
        assert [batch.id async for batch in client.batches.list(limit=2)] == made[::-1]
        with pytest.raises(openai.BadRequestError):
            await client.batches.list(limit=101)
        with pytest.raises(openai.NotFoundError):
            await client.batches.list(after="batch_0")

    play(story)


@pytest.mark.parametrize(
    "wrong",
    [{"input_file_id": "file-0"}, {"endpoint": "responses"}, {"completion_window": "1h"}, {"metadata": {"n": 1}}],
)
def test_a_create_that_is_wrong_makes_no_batch(wrong: dict[str, Any]) -> None:
    async def story(client: AsyncOpenAI, place: Place) -> None:
        with pytest.raises(openai.BadRequestError):
            await create(client, extra_body=wrong)
        assert not place.jobs

    asyncio.run(_through_respx(story, Place()))


def test_errors_are_as_the_package_reads_them(play: Callable[..., Place]) -> None:
    async def story(client: AsyncOpenAI, place: Place) -> None:
        with pytest.raises(openai.NotFoundError) as missing:
            await client.batches.retrieve("batch_0")
        assert missing.value.code == "not_found"
        assert missing.value.request_id is not None
        with pytest.raises(openai.InternalServerError):
            await client.batches.list()

    play(story, {"kind": "server_error", "at": "lookup#1:received", "status": 503})


class TestWebhooks:
    CONTRACT = LIKENESS.model_copy(update={"webhooks": Webhooks(enabled=True)})

    @pytest.mark.parametrize(("outcome", "kind"), [("succeeded", "batch.completed"), ("failed", "batch.failed")])
    def test_they_are_what_unwrap_verifies(self, outcome: Any, kind: str) -> None:
        async def story(client: AsyncOpenAI, place: Place) -> None:
            made = await create(client)
            await place.pass_time(3)
            (attempt,) = place.received
            event = client.webhooks.unwrap(attempt.body, attempt.headers)
            assert event.type == kind
            assert event.data.id == made.id  # type: ignore[union-attr]
            assert event.id == attempt.headers["webhook-id"]
            with pytest.raises(openai.InvalidWebhookSignatureError):
                client.webhooks.unwrap(attempt.body + b" ", attempt.headers)

        # unwrap() looks at the real clock, so the provider's stands there.
        now = ManualClock(SystemClock().now())
        asyncio.run(_through_respx(story, Place(work=Work(outcome=outcome), contract=self.CONTRACT, clock=now)))

    def test_a_forged_one_is_seen_through(self) -> None:
        async def story(client: AsyncOpenAI, place: Place) -> None:
            await create(client)
            await place.pass_time(3)
            forged = [fact.delivery for fact in place.facts if isinstance(fact, EventSent) and not fact.genuine]
            (attempt,) = [one for one in place.received if one.delivery in forged]
            with pytest.raises(openai.InvalidWebhookSignatureError):
                client.webhooks.unwrap(attempt.body, attempt.headers)

        place = Place(
            {"kind": "webhook_forged", "at": "create#1:delivered"},
            contract=self.CONTRACT,
            clock=ManualClock(SystemClock().now()),
        )
        asyncio.run(_through_respx(story, place))


LOST: Final = {"kind": "answer_lost", "at": "create#1:committed"}


class TestTheAnswerToACreateIsLost:
    """As found: the package retries by itself, and sends no key by which the retry could be recognised."""

    def test_the_ledger_holds_two_batches_for_one_call(self, monkeypatch: pytest.MonkeyPatch) -> None:
        async def no_time(seconds: float) -> None:
            waited.append(seconds)

        waited: list[float] = []
        monkeypatch.setattr("openai._base_client.anyio.sleep", no_time)

        async def story(client: AsyncOpenAI, place: Place) -> None:
            source = await upload(client)
            made = await create(client.with_options(max_retries=2, timeout=0.05), source)
            assert made.id == place.jobs[1], "it is told of the second, and never of the first"
            listed = [batch async for batch in client.batches.list()]
            assert [batch.metadata for batch in listed] == [{"client_reference": "op-1"}] * 2

        place = Place(LOST)
        asyncio.run(_on_a_socket(story, place))
        assert len(place.jobs) == 2
        assert len(waited) == 1
        assert [line.operation for line in place.boundary.ledger(place.clock.now())] == ["op-1", "op-1"]
        first, second = place.creates
        assert first.fingerprint == second.fingerprint, "the retry is the same request"
        assert first.token is second.token is None

    @pytest.mark.parametrize("play_in", [_on_a_socket, _through_respx], ids=["socket", "respx"])
    def test_with_retries_off_the_one_batch_is_found_by_its_metadata(self, play_in: Any) -> None:
        async def story(client: AsyncOpenAI, place: Place) -> None:
            source = await upload(client)
            with pytest.raises(openai.APITimeoutError):
                await create(client.with_options(timeout=0.05), source)
            (found,) = [batch async for batch in client.batches.list()]
            assert found.metadata == {"client_reference": "op-1"}
            assert [found.id] == place.jobs

        asyncio.run(play_in(story, Place(LOST)))

    def test_no_idempotency_key_is_sent(self) -> None:
        seen: list[httpx2.Headers] = []

        def answer(request: httpx2.Request) -> httpx2.Response:
            seen.append(request.headers)
            return httpx2.Response(400, json={"error": {}})

        client = OpenAI(
            api_key="k",
            base_url="http://provider.test/v1",
            http_client=httpx2.Client(transport=httpx2.MockTransport(answer)),
        )
        with client, pytest.raises(openai.BadRequestError):
            client.batches.create(input_file_id="f", endpoint="/v1/responses", completion_window="24h")
        assert not [name for name in seen[0] if "idempotency" in name]


def test_a_contract_it_has_no_words_for_is_refused() -> None:
    with pytest.raises(ValueError, match=r"openai-batch cannot write down this contract: .*create_answer: .*200"):
        Place(contract=Contract())


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("DELETE", "/v1/batches", "GET, POST"),
        ("GET", "/v1/files", "POST"),
        ("POST", "/v1/batches/b", "GET"),
        ("GET", "/v1/batches/b/cancel", "POST"),
        ("DELETE", "/v1/files/f", "GET"),
        ("POST", "/v1/files/f/content", "GET"),
    ],
)
def test_a_method_that_a_path_does_not_take_is_answered_with_those_it_does(
    method: str, path: str, allowed: str
) -> None:
    async def story(client: AsyncOpenAI, place: Place) -> None:
        async with httpx2.AsyncClient(trust_env=False, headers={"Authorization": "Bearer k"}) as plain:
            answer = await plain.request(method, f"http://provider.test{path}")
        assert (answer.status_code, answer.headers["Allow"]) == (405, allowed)

    asyncio.run(_through_respx(story, Place()))
