"""A run is drawn from its facts alone: what got lost is drawn as lost, and a fault stands at its commit point."""

from typing import Any, get_args

import pytest

from fake_provider.facts import (
    AnswerEnded,
    CommitPoint,
    Endpoint,
    EventDelivered,
    EventSent,
    Fate,
    FaultStruck,
    JobCreated,
    JobMoved,
    RequestSent,
)
from harness.history import (
    AnyFact,
    ClockSet,
    History,
    LeaseNoted,
    RunStarted,
    StateRecorded,
    WorkerEnded,
    WorkerResumed,
    WorkerStarted,
    WorkerStopped,
)
from harness.report.spans import Span, SpanKind, spans
from harness.report.timeline import NETWORK, WEBHOOKS, Drawn, Reach, Stroke, StrokeKind, Timeline, draw
from tests.harness.hostile import fact_of


def history(*facts: AnyFact | tuple[float, AnyFact]) -> History:
    """Facts a second apart, or at the moments given."""
    clock = [-1.0]
    made = History(lambda: clock[0])
    for fact in facts:
        clock[0], known = fact if isinstance(fact, tuple) else (clock[0] + 1, fact)
        made.record(known)
    return made


def request(worker: str = "w1", **rest: Any) -> RequestSent:
    return RequestSent(
        **{"exchange": 1, "worker": worker, "endpoint": Endpoint.STATUS, "method": "GET", "path": "/", **rest}
    )


def answer(fate: Fate = Fate.DELIVERED, **rest: Any) -> AnswerEnded:
    return AnswerEnded(
        **{"exchange": 1, "worker": "w1", "endpoint": Endpoint.STATUS, "fate": fate, "status": 200, **rest}
    )


def struck(point: CommitPoint, endpoint: Endpoint = Endpoint.STATUS, **rest: Any) -> FaultStruck:
    return FaultStruck(
        **{
            "fault": 0,
            "kind": "a_fault",
            "address": f"{endpoint}#1:{point}",
            "endpoint": endpoint,
            "point": point,
            "exchange": 1,
            "worker": "w1",
            **rest,
        }
    )


def stroke(drawn: Drawn) -> Stroke:
    assert len(drawn.strokes) == 1
    return drawn.strokes[0]


def drawn(*facts: AnyFact) -> Timeline:
    return draw(history(*facts))


@pytest.mark.parametrize("kind", get_args(AnyFact), ids=lambda kind: kind.__name__)
def test_every_kind_of_fact_can_be_drawn_on_lanes_that_are_there(kind: type[Any]) -> None:
    timeline = drawn(fact_of(kind))
    lanes = {lane.id for lane in timeline.lanes}
    picture = timeline.drawn[0]
    assert picture.strokes or picture.glyphs
    assert {glyph.lane for glyph in picture.glyphs} <= lanes
    assert {end for each in picture.strokes for end in (each.start, each.end)} <= lanes


def test_lanes_are_the_workers_in_their_order_between_harness_and_network() -> None:
    lanes = drawn(*(WorkerStarted(worker=name) for name in ("w10", "w2", "w1"))).lanes
    assert [lane.id for lane in lanes] == ["harness", "w1", "w2", "w10", "network", "provider"]


@pytest.mark.parametrize(("enabled", "there"), [(True, True), (False, False)])
def test_there_is_a_lane_for_webhooks_where_the_contract_has_them(enabled: bool, there: bool) -> None:
    started = RunStarted(
        scenario="s",
        mode="simulated",
        seed=0,
        contract={"webhooks": {"enabled": enabled}},
        timing={},
        credential="",
        origin="",
    )
    assert (WEBHOOKS in [lane.id for lane in drawn(started).lanes]) is there


def test_a_request_goes_from_its_worker_to_the_provider_and_its_answer_back() -> None:
    there, back = drawn(request("w2"), answer(worker="w2")).drawn
    assert stroke(there) == Stroke(kind=StrokeKind.REQUEST, start="w2", end="provider", label="status")
    assert stroke(back) == Stroke(kind=StrokeKind.ANSWER, start="provider", end="w2", label="200")


@pytest.mark.parametrize(
    ("fate", "reach"),
    [
        (Fate.DELIVERED, Reach.ARRIVES),
        (Fate.LOST, Reach.LOST),
        (Fate.CUT, Reach.CUT),
        (Fate.RESET, Reach.RESET),
        (Fate.ABANDONED, Reach.ABANDONED),
    ],
)
def test_what_became_of_an_answer_is_how_far_it_is_drawn(fate: Fate, reach: Reach) -> None:
    assert stroke(drawn(request(), answer(fate)).drawn[1]).reach is reach


def test_every_fate_is_drawn() -> None:
    assert {stroke(drawn(request(), answer(fate)).drawn[1]).reach for fate in Fate} == set(Reach)


@pytest.mark.parametrize(("fate", "reach"), [(Fate.LOST, Reach.LOST), (Fate.RESET, Reach.RESET)])
def test_a_request_met_by_a_fault_before_its_receipt_never_reaches_the_provider(fate: Fate, reach: Reach) -> None:
    there, _, back = drawn(request(), struck(CommitPoint.BEFORE_RECEIPT), answer(fate, status=None)).drawn
    assert stroke(there).reach is reach
    assert (stroke(back).start, stroke(back).label) == (NETWORK, "no answer")


def test_a_request_that_was_only_doubled_before_its_receipt_does_reach_the_provider() -> None:
    there, _, copy, back, echo = drawn(
        request(),
        struck(CommitPoint.BEFORE_RECEIPT, kind="request_duplicated"),
        request(exchange=2, copy_of=1),
        answer(),
        answer(Fate.LOST, exchange=2),
    ).drawn
    assert stroke(there).reach is stroke(back).reach is Reach.ARRIVES
    assert (stroke(copy).start, stroke(echo).end) == (NETWORK, NETWORK)


def test_a_request_to_another_origin_does_not_go_to_the_provider() -> None:
    assert stroke(drawn(request(origin="http://elsewhere.test")).drawn[0]).end == NETWORK


def test_a_create_shows_its_token_or_that_it_has_none() -> None:
    first, second = drawn(
        request(endpoint=Endpoint.CREATE, token="0123456789"), request(endpoint=Endpoint.CREATE)
    ).drawn
    assert (stroke(first).label, stroke(second).label) == ("create, token 012345…", "create, no token")


@pytest.mark.parametrize(
    ("endpoint", "point", "lane"),
    [
        (Endpoint.CREATE, CommitPoint.BEFORE_RECEIPT, NETWORK),
        (Endpoint.CREATE, CommitPoint.RECEIVED, "provider"),
        (Endpoint.CREATE, CommitPoint.COMMITTED, "provider"),
        (Endpoint.CREATE, CommitPoint.ANSWERING, NETWORK),
        (Endpoint.CREATE, CommitPoint.DELIVERED, "w1"),
        (Endpoint.WEBHOOK, CommitPoint.BEFORE_RECEIPT, NETWORK),
        (Endpoint.WEBHOOK, CommitPoint.RECEIVED, "w1"),
        (Endpoint.WEBHOOK, CommitPoint.DELIVERED, WEBHOOKS),
        (Endpoint.STORE, CommitPoint.RECEIVED, "w1"),
        (Endpoint.STORE, CommitPoint.COMMITTED, "w1"),
    ],
)
def test_a_fault_stands_where_its_commit_point_is(endpoint: Endpoint, point: CommitPoint, lane: str) -> None:
    (glyph,) = drawn(struck(point, endpoint)).drawn[0].glyphs
    assert (glyph.kind, glyph.lane, glyph.point) == ("fault", lane, point)


def event(**rest: Any) -> EventSent:
    return EventSent(
        **{
            "delivery": 1,
            "event": "evt_1",
            "type": "job.succeeded",
            "job": "job_1",
            "operation": "op-1",
            "attempt": 1,
            **rest,
        }
    )


def test_a_webhook_goes_to_the_worker_that_took_it() -> None:
    sent, taken = drawn(event(), EventDelivered(delivery=1, event="evt_1", worker="w2", status=204)).drawn
    assert stroke(sent) == Stroke(kind=StrokeKind.EVENT, start=WEBHOOKS, end="w2", label="job.succeeded")
    assert stroke(taken) == Stroke(kind=StrokeKind.RECEIPT, start="w2", end=WEBHOOKS, label="204")


def test_a_webhook_that_nobody_answered_is_drawn_as_lost() -> None:
    assert stroke(drawn(event(attempt=2)).drawn[0]).reach is Reach.LOST
    sent, silence = drawn(event(), EventDelivered(delivery=1, event="evt_1")).drawn
    assert stroke(sent).reach is Reach.LOST
    assert silence.glyphs[0].kind == "unanswered"


def test_a_forged_webhook_is_told_from_a_genuine_one() -> None:
    assert stroke(drawn(event(genuine=False)).drawn[0]).kind is StrokeKind.FORGERY


# -- what lasts


def state(before: str | None, after: str) -> StateRecorded:
    return StateRecorded(
        worker="w1", operation="op-1", before=before, after=after, entry="transition", actor="w1", cause="", reason=""
    )


def moved(before: str, after: str) -> JobMoved:
    return JobMoved(job="job_1", operation="op-1", before=before, after=after, cause="schedule")


def lease(what: str, lasts_s: float = 0.0, worker: str = "w1") -> LeaseNoted:
    return LeaseNoted(worker=worker, operation="op-1", what=what, fence=1, lasts_s=lasts_s)


def of(kind: SpanKind, made: History) -> list[tuple[str, int, int | None, str]]:
    return [(span.track, span.since, span.until, span.label) for span in spans(made) if span.kind is kind]


def test_local_and_remote_states_are_bands_that_follow_each_other() -> None:
    made = history(
        state(None, "create_pending"),
        JobCreated(job="job_1", operation="op-1", exchange=1),
        moved("queued", "running"),
        state("create_pending", "accepted"),
        state("accepted", "accepted"),
        moved("running", "succeeded"),
    )
    assert of(SpanKind.LOCAL, made) == [("op-1", 0, 3, "create_pending"), ("op-1", 3, None, "accepted")]
    assert of(SpanKind.REMOTE, made) == [
        ("job_1", 1, 2, "queued"),
        ("job_1", 2, 5, "running"),
        ("job_1", 5, None, "succeeded"),
    ]


def test_a_worker_lives_until_it_ends_and_a_freeze_ends_with_it() -> None:
    made = history(
        WorkerStarted(worker="w1"),
        WorkerStopped(worker="w1"),
        WorkerResumed(worker="w1"),
        WorkerStopped(worker="w1"),
        WorkerEnded(worker="w1", how="killed"),
        WorkerStarted(worker="w1", life=2),
    )
    assert of(SpanKind.ALIVE, made) == [("w1", 0, 4, ""), ("w1", 5, None, "")]
    assert of(SpanKind.FROZEN, made) == [("w1", 1, 2, ""), ("w1", 3, 4, "")]


def test_a_clock_that_is_set_is_drawn_on_its_worker_with_how_wrong_it_is() -> None:
    wrong, right = ClockSet(worker="w1", ahead_s=-60.0), ClockSet(worker="w1", ahead_s=0.0)
    glyphs = [glyph for each in drawn(wrong, right).drawn for glyph in each.glyphs]
    assert [(glyph.lane, glyph.kind, glyph.label) for glyph in glyphs] == [
        ("w1", "clock", "clock -60 s"),
        ("w1", "clock", "clock right"),
    ]


def test_a_lease_lasts_from_taking_to_giving_up_through_its_renewals() -> None:
    made = history((0, lease("taken", 1.5)), (1, lease("renewed", 1.5)), (2, lease("released")))
    assert of(SpanKind.LEASE, made) == [("w1", 0, 2, "op-1")]


def test_the_lease_of_a_frozen_worker_ends_when_its_time_is_over_and_not_when_it_wakes() -> None:
    made = history(
        (0, lease("taken", 1.5)),
        (0, WorkerStopped(worker="w1")),
        (1.5, lease("taken", 1.5, "w2")),
        (9, lease("lost")),
    )
    assert of(SpanKind.LEASE, made) == [("w1", 0, 2, "op-1"), ("w2", 2, 3, "op-1")]


def test_a_timeline_holds_all_of_it() -> None:
    made = history(WorkerStarted(worker="w1"), state(None, "create_pending"))
    timeline = draw(made)
    assert len(timeline.drawn) == 2
    assert timeline.spans == (
        Span(kind=SpanKind.ALIVE, track="w1", since=0),
        Span(kind=SpanKind.LOCAL, track="op-1", since=1, label="create_pending"),
    )
