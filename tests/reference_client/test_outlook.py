"""What an operation will be gone on with from: all that decides about it, and neither the past nor the time of day."""

import msgspec
import pytest

from reference_client.lifecycle import LocalState
from reference_client.operation import Call, InFlight, Operation
from reference_client.outlook import outlook

LIFETIME_S = 3600.0
OPERATION = Operation(
    operation_id="op-1",
    state=LocalState.OBSERVING,
    adapter="jobs",
    target="http://provider.test",
    request_body=b"{}",
    request_fingerprint="sha256:0",
    client_reference="op-1",
    idempotency_token="0" * 40,
    trace_id="1" * 32,
    authorised_by="anna",
    started_by="w1",
    created_at=100.0,
    create_deadline=110.0,
    result_deadline=120.0,
    first_sent_at=100.0,
    next_attempt_at=103.0,
    remote_job_id="job_1",
    polls=2,
)


def shifted(operation: Operation, by_s: float) -> Operation:
    times = ("created_at", "create_deadline", "result_deadline", "first_sent_at", "next_attempt_at")
    return msgspec.structs.replace(operation, **{name: getattr(operation, name) + by_s for name in times})


def looked_at(operation: Operation, now: float) -> tuple[object, dict[str, float]]:
    state, ends = outlook(operation, now, key_lifetime_s=LIFETIME_S)
    return msgspec.to_builtins(state, builtin_types=(bytes,)), ends


def test_the_time_of_day_is_not_in_it() -> None:
    assert looked_at(OPERATION, 101.0) == looked_at(shifted(OPERATION, 50.0), 151.0)


@pytest.mark.parametrize(
    "past",
    [{"version": 7}, {"calls": 7}, {"polls": 7}, {"explanation": "so"}, {"trace_id": "2" * 32}, {"progress": 50}],
)
def test_what_decides_nothing_is_not_in_it(past: dict[str, object]) -> None:
    assert looked_at(OPERATION, 101.0) == looked_at(msgspec.structs.replace(OPERATION, **past), 101.0)


@pytest.mark.parametrize(
    "change",
    [
        {"misses": 1},
        {"polls": 0},
        {"next_attempt_at": 104.0},
        {"remote_state": "running"},
        {"in_flight": InFlight(call=Call.STATUS, attempt=1, since=101.0, worker="w1", fence=1)},
    ],
)
def test_what_decides_something_is(change: dict[str, object]) -> None:
    assert looked_at(OPERATION, 101.0) != looked_at(msgspec.structs.replace(OPERATION, **change), 101.0)


def test_a_wait_that_is_over_is_none() -> None:
    due = msgspec.structs.replace(OPERATION, next_attempt_at=90.0)
    assert looked_at(OPERATION, 103.0) == looked_at(due, 103.0)


def test_deadlines_stand_beside_it_while_they_matter() -> None:
    _, ends = looked_at(OPERATION, 101.0)
    assert ends == {"result_deadline": 19.0}
    _, ends = looked_at(msgspec.structs.replace(OPERATION, state=LocalState.CREATE_UNKNOWN), 101.0)
    assert ends == {"create_deadline": 9.0, "result_deadline": 19.0, "token": LIFETIME_S - 1.0}
    _, ends = looked_at(OPERATION, 125.0)
    assert ends == {}


def test_attempts_count_while_they_are_made() -> None:
    again = msgspec.structs.replace(OPERATION, create_attempts=3)
    assert looked_at(OPERATION, 101.0) == looked_at(again, 101.0)
    unknown, more = (msgspec.structs.replace(each, state=LocalState.CREATE_UNKNOWN) for each in (OPERATION, again))
    assert looked_at(unknown, 101.0) != looked_at(more, 101.0)
