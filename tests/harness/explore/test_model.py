"""The reference client's decisions, in every order that two workers and two faults allow."""

from collections.abc import Mapping
from hashlib import sha256

import msgspec
import pytest

from fake_provider.contract import (
    Contract,
    Idempotency,
    Lookup,
    LookupBy,
    Mechanism,
    Result,
    ResultKind,
    Status,
    Webhooks,
)
from fake_provider.wire import Request
from fake_provider.work import Work
from harness.explore.model import Bounds, explore_all
from harness.subjects.pure import PureReference
from reference_client.operation import Command, Operation
from reference_client.stores.protocol import Lease
from scenarios.model import Timing

INLINE = Result(kind=ResultKind.INLINE)


@pytest.mark.parametrize(
    ("faults", "stops", "states"), [(0, 0, 14), (1, 0, 272), (2, 0, 2349), (0, 1, 60), (0, 2, 143), (1, 1, 2242)]
)
def test_every_state_is_visited_and_no_rule_breaks_in_any(faults: int, stops: int, states: int) -> None:
    found = explore_all(Bounds(faults=faults, stops=stops))
    words = f"{faults} faults, {stops} stops"
    print(f"{words}: {found.states} states, {found.steps} steps, {found.ends} ends")  # noqa: T201  asked for
    assert found.findings == ()
    assert found.states == states  # another number means another client or another provider: look at what changed
    assert found.ends > faults * 10
    assert len(found.judged) > 30
    assert {"one-job-per-operation", "stale-worker-does-nothing"} & found.judged
    assert ("cancelled-only-if-confirmed" in found.judged) is (stops > 0)


def test_a_provider_that_keeps_no_tokens_and_finds_nothing_is_explored_as_well() -> None:
    careless = Contract(
        idempotency=Idempotency(mechanism=Mechanism.NONE, required=False),
        lookup=Lookup(by=LookupBy.NONE, authoritative=False),
        result=INLINE,
    )
    assert explore_all(Bounds(faults=1, contract=careless)).findings == ()


class NewTokenPerCall(PureReference):
    """Mints a token for each call, so that a create that is sent again is another create."""

    def request(self, operation: Operation) -> Request:
        asked = super().request(operation)
        token = f'"{sha256(str(operation.calls).encode()).hexdigest()}"'
        return msgspec.structs.replace(asked, headers={**asked.headers, "idempotency-key": token})


class ForgetsCommands(PureReference):
    """Takes no command up: what a person said is gone with the next lease."""

    def claimed(self, worker: str, now: float) -> tuple[Lease, Operation, tuple[Command, ...]]:
        lease, operation, _ = super().claimed(worker, now)
        self.shelf.waiting = ()
        return lease, operation, ()


def test_a_person_may_say_stop_at_any_moment_and_a_client_that_forgets_it_is_caught() -> None:
    seldom = Contract(result=INLINE, status=Status(retry_after_s=3))
    long = Bounds(
        workers=1,
        faults=0,
        stops=1,
        contract=seldom,
        work=Work(takes_s=60),
        timing=Timing(poll_jitter=0, result_deadline_s=12),
    )
    found = explore_all(long, client=ForgetsCommands)
    broken = {finding.rule: path for finding, path in found.findings}
    assert "stop-command-acted-upon" in broken
    assert "a person says stop" in broken["stop-command-acted-upon"]
    assert explore_all(long).findings == ()


WEBHOOKS = Contract(result=INLINE, webhooks=Webhooks(enabled=True, progress_events=True))


@pytest.mark.parametrize(("faults", "stops", "states"), [(1, 0, 915), (0, 1, 175)])
def test_webhooks_arrive_in_every_order_with_everything_else(faults: int, stops: int, states: int) -> None:
    found = explore_all(Bounds(faults=faults, stops=stops, contract=WEBHOOKS))
    assert found.findings == ()
    assert found.states == states
    assert "final-event-leads-to-a-read" in found.judged
    assert ("duplicate-webhook-changes-nothing" in found.judged) is (faults > 0)


class TakesEventsAsNew(PureReference):
    """Does not know an event that it had before."""

    def webhook(self, headers: Mapping[str, str], body: bytes, *, worker: str, now: float) -> int:
        self.shelf.events.clear()
        return super().webhook(headers, body, worker=worker, now=now)


def test_a_client_that_does_not_know_its_events_again_is_caught() -> None:
    found = explore_all(Bounds(workers=1, faults=1, contract=WEBHOOKS, work=Work(takes_s=2)), client=TakesEventsAsNew)
    broken = {finding.rule: path for finding, path in found.findings}
    assert "duplicate-webhook-changes-nothing" in broken
    assert "webhook 1: it arrives, and will once more" in broken["duplicate-webhook-changes-nothing"]


def test_a_client_that_lacks_a_safeguard_is_caught_and_the_path_tells_how() -> None:
    found = explore_all(Bounds(faults=1), client=NewTokenPerCall)
    broken = {finding.rule: path for finding, path in found.findings}
    assert "one-job-per-operation" in broken
    assert any(": " in choice for choice in broken["one-job-per-operation"])  # a mishap was needed
