"""What every store promises. Each test is put to each store there is: see ``open_store``."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from reference_client import audit
from reference_client.lifecycle import LocalState
from reference_client.operation import Call, EventNotice, HistoryEntry, Operation, Stop
from reference_client.stores.postgres import PostgresStore
from reference_client.stores.postgres_database import Database
from reference_client.stores.protocol import LeaseLost, UnknownOperation
from reference_client.stores.sqlite import SQLiteStore
from reference_client.workflow import Send

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from reference_client.steps import Step
    from reference_client.stores.protocol import Claimed, OperationStore
    from reference_client.workflow import Workflow
    from tests.reference_client.conftest import ManualClock, Say

    Tell = Callable[["Desk"], Awaitable[None]]

S = LocalState
STOP = Stop(who="ann", why="enough")
EVENT = EventNotice(event_id="evt_1", type="job.succeeded", remote_job_id="job_1", remote_state="succeeded")


class Desk:
    """A store and the workflow that fills it."""

    def __init__(self, store: OperationStore, workflow: Workflow, clock: ManualClock, say: type[Say]) -> None:
        self.store = store
        self.workflow = workflow
        self.clock = clock
        self.say = say

    async def submitted(self, name: str = "op-1") -> Operation:
        return await self.store.add(self.opened(name))

    def opened(self, name: str = "op-1") -> Step:
        return self.workflow.open(
            name,
            {"kind": "report"},
            target="http://provider.test",
            authorised_by="ann",
            actor="w0",
            now=self.clock.now(),
        )

    async def claimed(self, owner: str = "w1", lease_s: float = 2) -> Claimed:
        claimed = await self.store.claim(owner, lease_s)
        assert claimed is not None
        return claimed

    def intent(self, claimed: Claimed) -> Step:
        return self.workflow.begin(
            claimed.operation, Send(Call.CREATE, "now"), worker="w1", fence=claimed.lease.fence, now=self.clock.now()
        )

    def accepted(self, begun: Step) -> Step:
        answer = self.say.answer(202, self.say.job(), at=self.clock.now())
        return self.workflow.conclude(begun.operation, answer, actor="w1", now=self.clock.now())

    def entry(self, command: Any) -> Callable[[Operation, float], HistoryEntry]:
        return lambda operation, now: self.workflow.given(operation, command, actor="cli", now=now)


class ClockedDatabase(Database):
    """Goes by the test's clock: what ``store_now()`` says in the database is what the test says it is."""

    def __init__(self, address: str, clock: ManualClock) -> None:
        super().__init__(address)
        self._clock = clock

    async def _connected(self) -> Any:
        connected_before = self._connection
        connection = await super()._connected()
        if connection is not connected_before:
            await connection.execute(
                "CREATE OR REPLACE FUNCTION store_now() RETURNS double precision LANGUAGE sql VOLATILE"
                " AS $$ SELECT current_setting('test.now')::double precision $$"
            )
        await connection.execute("SELECT set_config('test.now', %s, false)", (repr(float(self._clock.now())),))
        return connection


class ClockedPostgresStore(PostgresStore):
    """A store on such a database."""

    def __init__(self, address: str, clock: ManualClock) -> None:
        super().__init__(address)
        self._database = ClockedDatabase(address, clock)


@pytest.fixture(params=["sqlite", "postgres"])
def run(
    request: pytest.FixtureRequest,
    tmp_path: Any,
    clock: ManualClock,
    make_workflow: Callable[..., Workflow],
    say: type[Say],
) -> Callable[[Tell], None]:
    """Tell a story to a store of each kind."""
    address: str = request.getfixturevalue("postgres_url") if request.param == "postgres" else ""

    def opened() -> OperationStore:
        if address:
            return ClockedPostgresStore(address, clock)
        return SQLiteStore(tmp_path / "operations.sqlite", now=clock.now)

    async def told(tell: Tell) -> None:
        store = opened()
        try:
            await tell(Desk(store, make_workflow(), clock, say))
            verdict = audit.verify(await store.links(), standing=await store.standing())
            assert verdict.problem is None
        finally:
            await store.close()

    return lambda tell: asyncio.run(told(tell))


def test_what_was_added_is_there_with_its_history(run: Callable[[Tell], None]) -> None:
    async def tell(desk: Desk) -> None:
        added = await desk.submitted()
        assert await desk.store.load("op-1") == added
        assert [entry.after for entry in await desk.store.history("op-1")] == [S.CREATE_PENDING]
        assert [each.operation_id for each in await desk.store.operations()] == ["op-1"]

    run(tell)


def test_a_known_operation_is_not_added_again(run: Callable[[Tell], None]) -> None:
    async def tell(desk: Desk) -> None:
        first = await desk.submitted()
        assert await desk.submitted() == first
        assert len(await desk.store.history("op-1")) == 1

    run(tell)


def test_an_unknown_operation_is_an_error_by_name(run: Callable[[Tell], None]) -> None:
    async def tell(desk: Desk) -> None:
        for ask in (
            desk.store.load("op-9"),
            desk.store.history("op-9"),
            desk.store.give("op-9", STOP, desk.entry(STOP)),
        ):
            with pytest.raises(UnknownOperation, match="op-9"):
                await ask

    run(tell)


def test_an_operation_has_one_owner_until_the_lease_expires_and_not_before(run: Callable[[Tell], None]) -> None:
    async def tell(desk: Desk) -> None:
        await desk.submitted()
        first = await desk.claimed("w1", 2)
        assert await desk.store.claim("w2", 2) is None
        assert await desk.store.due_in_s() == pytest.approx(2)
        desk.clock.time += 1.9
        assert await desk.store.claim("w2", 2) is None
        desk.clock.time += 0.2
        second = await desk.claimed("w2", 2)
        assert second.lease.fence > first.lease.fence

    run(tell)


def test_who_lost_the_lease_writes_nothing_whatever_he_tries(run: Callable[[Tell], None]) -> None:
    async def tell(desk: Desk) -> None:
        await desk.submitted()
        stale = await desk.claimed("w1", 2)
        desk.clock.time += 3
        for _ in ("expired", "taken over"):
            step = desk.intent(stale)
            for write in (
                desk.store.commit(stale.lease, step),
                desk.store.release(stale.lease, step, due_at=None),
                desk.store.release(stale.lease, None, due_at=None),
                desk.store.renew(stale.lease, 2),
            ):
                with pytest.raises(LeaseLost, match="w1"):
                    await write
            await desk.store.claim("w2", 2)
        assert len(await desk.store.history("op-1")) == 1
        assert (await desk.store.load("op-1")).in_flight is None

    run(tell)


def test_the_same_worker_with_an_older_lease_is_a_stranger(run: Callable[[Tell], None]) -> None:
    async def tell(desk: Desk) -> None:
        await desk.submitted()
        old = await desk.claimed("w1", 2)
        desk.clock.time += 3
        await desk.claimed("w1", 2)
        with pytest.raises(LeaseLost):
            await desk.store.commit(old.lease, desk.intent(old))

    run(tell)


def test_a_write_made_from_an_older_record_is_refused(run: Callable[[Tell], None]) -> None:
    async def tell(desk: Desk) -> None:
        await desk.submitted()
        claimed = await desk.claimed()
        await desk.store.commit(claimed.lease, desk.intent(claimed))
        desk.clock.time += 0.1
        with pytest.raises(LeaseLost):
            await desk.store.commit(claimed.lease, desk.intent(claimed))
        assert len(await desk.store.history("op-1")) == 2

    run(tell)


def test_the_very_same_step_once_more_changes_nothing(run: Callable[[Tell], None]) -> None:
    """Whoever was not told whether a write was made makes it again."""

    async def tell(desk: Desk) -> None:
        await desk.submitted()
        claimed = await desk.claimed()
        begun = desk.intent(claimed)
        first = await desk.store.commit(claimed.lease, begun, lasts_s=5)
        assert await desk.store.commit(claimed.lease, begun, lasts_s=5) == first
        accepted = desk.accepted(begun)
        for _ in range(2):
            await desk.store.release(first, accepted, due_at=desk.clock.now() + 9)
        assert [entry.kind for entry in await desk.store.history("op-1")] == ["transition", "intent", "transition"]
        assert await desk.store.due_in_s() == pytest.approx(9)

    run(tell)


def test_the_same_step_by_who_lost_the_lease_is_refused(run: Callable[[Tell], None]) -> None:
    async def tell(desk: Desk) -> None:
        await desk.submitted()
        claimed = await desk.claimed("w1", 2)
        begun = desk.intent(claimed)
        await desk.store.commit(claimed.lease, begun)
        desk.clock.time += 3
        await desk.claimed("w2", 2)
        with pytest.raises(LeaseLost):
            await desk.store.commit(claimed.lease, begun)

    run(tell)


def test_a_job_id_may_be_anything_a_provider_writes(run: Callable[[Tell], None]) -> None:
    async def tell(desk: Desk) -> None:
        await desk.submitted()
        claimed = await desk.claimed()
        begun = desk.intent(claimed)
        answer = desk.say.answer(202, desk.say.job(job_id="job\0\n\U0001f600"), at=desk.clock.now())
        step = desk.workflow.conclude(begun.operation, answer, actor="w1", now=desk.clock.now())
        lease = await desk.store.commit(claimed.lease, begun)
        await desk.store.release(lease, step, due_at=None)
        assert (await desk.store.load("op-1")).remote_job_id == "job\0\n\U0001f600"
        event = EventNotice(event_id="evt_1", type="job.succeeded", remote_job_id="job\0\n\U0001f600")
        assert await desk.store.take_event(event, desk.entry(event)) is not None

    run(tell)


def test_a_commit_extends_the_lease_and_never_shortens_it(run: Callable[[Tell], None]) -> None:
    async def tell(desk: Desk) -> None:
        await desk.submitted()
        claimed = await desk.claimed("w1", 2)
        begun = desk.intent(claimed)
        longer = await desk.store.commit(claimed.lease, begun, lasts_s=5)
        assert longer.until == pytest.approx(desk.clock.now() + 5)
        same = await desk.store.commit(longer, desk.accepted(begun), lasts_s=1)
        assert same.until == longer.until
        assert await desk.store.renew(same, 1) == same
        assert (await desk.store.renew(same, 9)).until == pytest.approx(desk.clock.now() + 9)

    run(tell)


def test_a_released_operation_is_due_when_its_time_comes(run: Callable[[Tell], None]) -> None:
    async def tell(desk: Desk) -> None:
        await desk.submitted()
        claimed = await desk.claimed()
        await desk.store.release(claimed.lease, desk.intent(claimed), due_at=desk.clock.now() + 7)
        assert await desk.store.claim("w2", 2) is None
        assert await desk.store.due_in_s() == pytest.approx(7)
        desk.clock.time += 7.001
        found = await desk.claimed("w2")
        assert found.operation.in_flight is not None

    run(tell)


def test_a_resting_operation_is_never_due_by_itself(run: Callable[[Tell], None]) -> None:
    async def tell(desk: Desk) -> None:
        await desk.submitted()
        claimed = await desk.claimed()
        await desk.store.release(claimed.lease, None, due_at=None)
        desk.clock.time += 1_000_000
        assert await desk.store.claim("w2", 2) is None
        assert await desk.store.due_in_s() is None

    run(tell)


def test_the_longest_due_comes_first(run: Callable[[Tell], None]) -> None:
    async def tell(desk: Desk) -> None:
        for name in ("op-b", "op-a"):
            await desk.submitted(name)
            desk.clock.time += 1
        assert [(await desk.claimed()).operation.operation_id for _ in range(2)] == ["op-b", "op-a"]

    run(tell)


def test_a_command_makes_a_resting_operation_due_and_comes_with_it_once(run: Callable[[Tell], None]) -> None:
    async def tell(desk: Desk) -> None:
        await desk.submitted()
        await desk.store.release((await desk.claimed()).lease, None, due_at=None)
        entry = await desk.store.give("op-1", STOP, desk.entry(STOP))
        assert (entry.before, entry.after) == (S.CREATE_PENDING, S.CREATE_PENDING)
        claimed = await desk.claimed()
        assert [given.command for given in claimed.commands] == [STOP]
        step = desk.workflow.take_up(claimed.operation, STOP, actor="w1", now=desk.clock.now())
        taken = [given.number for given in claimed.commands]
        await desk.store.release(claimed.lease, step, due_at=desk.clock.now(), taken=taken)
        assert (await desk.claimed()).commands == ()

    run(tell)


def test_a_command_during_a_lease_waits_for_the_owner_and_makes_it_due_at_once(run: Callable[[Tell], None]) -> None:
    async def tell(desk: Desk) -> None:
        await desk.submitted()
        claimed = await desk.claimed()
        await desk.store.give("op-1", STOP, desk.entry(STOP))
        assert await desk.store.claim("w2", 2) is None, "a command does not break a lease"
        await desk.store.release(claimed.lease, desk.intent(claimed), due_at=desk.clock.now() + 1000)
        assert [given.command for given in (await desk.claimed("w2")).commands] == [STOP]

    run(tell)


def test_an_event_is_recorded_once_however_often_it_comes(run: Callable[[Tell], None]) -> None:
    async def tell(desk: Desk) -> None:
        await desk.submitted()
        claimed = await desk.claimed()
        begun = desk.intent(claimed)
        lease = await desk.store.commit(claimed.lease, begun)
        await desk.store.release(lease, desk.accepted(begun), due_at=desk.clock.now() + 1000)
        assert await desk.store.take_event(EVENT, desk.entry(EVENT)) is not None
        assert await desk.store.take_event(EVENT, desk.entry(EVENT)) is None
        assert [given.command for given in (await desk.claimed()).commands] == [EVENT]

    run(tell)


def test_an_event_before_the_creates_answer_is_kept_and_told_then(run: Callable[[Tell], None]) -> None:
    async def tell(desk: Desk) -> None:
        await desk.submitted()
        claimed = await desk.claimed()
        begun = desk.intent(claimed)
        lease = await desk.store.commit(claimed.lease, begun)
        assert await desk.store.take_event(EVENT, desk.entry(EVENT)) is None
        await desk.store.release(lease, desk.accepted(begun), due_at=desk.clock.now() + 1000)
        assert [given.command for given in (await desk.claimed()).commands] == [EVENT]

    run(tell)


def test_a_result_is_kept_beside_the_record_byte_for_byte(run: Callable[[Tell], None]) -> None:
    async def tell(desk: Desk) -> None:
        body = b'{"client_reference":"op-1","records":[]}'
        await desk.submitted()
        claimed = await desk.claimed()
        begun = desk.intent(claimed)
        lease = await desk.store.commit(claimed.lease, begun)
        done = desk.say.answer(200, desk.say.job("succeeded", result={"inline": msgspec.json.decode(body)}))
        step = desk.workflow.conclude(begun.operation, done, actor="w1", now=desk.clock.now())
        lease = await desk.store.commit(lease, step)
        collected = desk.workflow.collect(step.operation, actor="w1", now=desk.clock.now())
        await desk.store.release(lease, collected, due_at=None)
        assert await desk.store.result("op-1") == body
        assert await desk.store.result("op-2") is None

    run(tell)


def test_a_record_survives_the_store_unchanged(run: Callable[[Tell], None]) -> None:
    async def tell(desk: Desk) -> None:
        await desk.submitted()
        claimed = await desk.claimed()
        begun = desk.intent(claimed)
        lease = await desk.store.commit(claimed.lease, begun)
        accepted = desk.accepted(begun)
        await desk.store.commit(lease, accepted)
        assert await desk.store.load("op-1") == accepted.operation
        assert (await desk.store.history("op-1"))[-1] == accepted.entries[-1]

    run(tell)
