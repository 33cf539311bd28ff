"""The story of a run is told from its facts alone, and leaves out what goes without saying."""

from typing import get_args

import pytest

from fake_provider.facts import (
    AnswerEnded,
    CancelTaken,
    CommitPoint,
    Endpoint,
    EventDelivered,
    EventSent,
    Fate,
    FaultsHealed,
    FaultStruck,
    JobCreated,
    JobMoved,
    RequestSent,
    ResultRead,
)
from harness.history import (
    AnyFact,
    Claimed,
    Commanded,
    CommandRefused,
    Entry,
    History,
    LeaseNoted,
    LedgerRead,
    ProcessReaped,
    RunEnded,
    RunStarted,
    SecretSaid,
    StateRecorded,
    SubjectComplained,
    WorkerEnded,
    WorkerResumed,
    WorkerStarted,
    WorkerStopped,
)
from harness.report.story import Line, Mark, tell
from harness.report.words import tellers
from harness.verdict import Finding


class Run:
    """A history written by hand: one exchange, one job, one operation unless said otherwise."""

    def __init__(self) -> None:
        self.clock = 0.0
        self.history = History(lambda: self.clock)
        self.exchange = 0

    def at(self, seconds: float, *facts: AnyFact) -> "Run":
        self.clock = seconds
        for fact in facts:
            self.history.record(fact)
        return self

    def asks(self, seconds: float, endpoint: Endpoint, *, worker: str = "w1", token: str | None = None) -> "Run":
        self.exchange += 1
        return self.at(
            seconds,
            RequestSent(
                exchange=self.exchange,
                worker=worker,
                endpoint=endpoint,
                method="GET",
                path="/v1/jobs",
                operation="op-1",
                token=token,
            ),
        )

    def hears(
        self,
        seconds: float,
        endpoint: Endpoint,
        *,
        status: int | None = 200,
        state: str | None = "running",
        fate: Fate = Fate.DELIVERED,
        worker: str = "w1",
    ) -> "Run":
        return self.at(
            seconds,
            AnswerEnded(
                exchange=self.exchange,
                worker=worker,
                endpoint=endpoint,
                fate=fate,
                status=status,
                operation="op-1",
                job="job_1",
                remote_state=state,
                canonical_state=state,
            ),
        )

    def records(self, seconds: float, before: str | None, after: str, *, entry: str = "transition") -> "Run":
        return self.at(
            seconds,
            StateRecorded(
                worker="w1",
                operation="op-1",
                before=before,
                after=after,
                entry=entry,
                actor="w1",
                cause="answer",
                reason="because",
            ),
        )

    def struck(self, seconds: float, kind: str, endpoint: Endpoint, point: CommitPoint) -> "Run":
        return self.at(
            seconds,
            FaultStruck(
                fault=0,
                kind=kind,
                address=f"{endpoint}#1:{point}",
                endpoint=endpoint,
                point=point,
                worker="w1",
                operation="op-1",
            ),
        )

    def told(self, *findings: Finding) -> list[Line]:
        return tell(self.history, findings)


def texts(lines: list[Line]) -> list[str]:
    return [f"{line.actor} {line.text}" for line in lines]


def lost_create() -> Run:
    """A create whose answer is lost, and its retry with the same token."""
    run = Run()
    run.asks(0, Endpoint.CREATE, token="t" * 20)
    run.at(0, JobCreated(job="job_1", operation="op-1", exchange=1))
    run.struck(0, "answer_lost", Endpoint.CREATE, CommitPoint.COMMITTED)
    run.hears(1, Endpoint.CREATE, status=202, state="queued", fate=Fate.LOST)
    run.records(1, "create_pending", "create_unknown")
    run.asks(1.5, Endpoint.CREATE, token="t" * 20)
    return run.hears(1.5, Endpoint.CREATE, status=202, state="queued")


def test_a_fault_is_told_with_its_commit_point_and_what_the_client_did_next() -> None:
    lines = lost_create().told()
    assert texts(lines) == [
        "w1 create of op-1, token tttttttttttt…",
        "provider takes the create of op-1 as job_1, a new job",
        "fault answer_lost strikes at create#1:committed, against w1: with the effect applied and no answer sent",
        "w1 create of op-1: 202 naming job_1 queued, but no answer came through",
        "w1 records op-1: create_pending → create_unknown: because",
        "w1 create of op-1, attempt 2, the same token: 202 naming job_1 queued",
    ]
    assert [line.mark for line in lines] == [
        Mark.PLAIN,
        Mark.PLAIN,
        Mark.FAULT,
        Mark.PLAIN,
        Mark.NEXT,
        Mark.PLAIN,
    ]


def test_another_token_for_the_retry_is_pointed_out() -> None:
    run = Run().asks(0, Endpoint.CREATE, token="first").asks(1, Endpoint.CREATE, token="second")
    assert texts(run.told())[-1] == "w1 create of op-1, attempt 2, ANOTHER token second"


def test_a_request_without_a_token_says_so() -> None:
    assert texts(Run().asks(0, Endpoint.CREATE).told()) == ["w1 create of op-1, no token"]


def test_a_second_job_for_one_operation_is_told_even_if_the_answer_came_through() -> None:
    run = lost_create()
    run.at(1.5, JobCreated(job="job_2", operation="op-1", exchange=2))
    assert "provider takes the create of op-1 as job_2, a new job" in texts(run.told())


def test_status_reads_that_saw_the_same_are_one_line() -> None:
    run = Run()
    for second in range(3):
        run.asks(second, Endpoint.STATUS).hears(second, Endpoint.STATUS)
    run.asks(3, Endpoint.STATUS).hears(3, Endpoint.STATUS, state="succeeded")
    lines = run.told()
    assert texts(lines) == [
        "w1 status of op-1: 200 running (3 reads alike)",
        "w1 status of op-1: 200 succeeded",
    ]
    assert lines[0].facts == (0, 1, 2, 3, 4, 5)


def test_a_status_read_that_proves_a_finding_has_a_line_of_its_own() -> None:
    run = Run()
    for second in range(3):
        run.asks(second, Endpoint.STATUS).hears(second, Endpoint.STATUS)
    finding = Finding(rule="obeys-retry-after", requirement="W4.2", message="too early", facts=(2,))
    lines = run.told(finding)
    assert [(line.mark, line.facts) for line in lines] == [
        (Mark.PLAIN, (0, 1)),
        (Mark.PLAIN, (2, 3)),
        (Mark.FINDING, (2,)),
        (Mark.PLAIN, (4, 5)),
    ]


def test_a_finding_stands_under_the_last_fact_that_proves_it() -> None:
    run = lost_create()
    finding = Finding(rule="same-token-on-retry", requirement="W2.1", message="two tokens", facts=(0, 5))
    lines = run.told(finding)
    number = next(number for number, line in enumerate(lines) if line.mark is Mark.FINDING)
    assert 5 in lines[number - 1].facts
    assert texts(lines)[number] == "same-token-on-retry W2.1: two tokens"


def test_a_finding_that_cites_nothing_is_told_at_the_end() -> None:
    lines = lost_create().told(Finding(rule="a-rule", requirement="W1.1", message="nothing", facts=()))
    assert lines[-1].mark is Mark.FINDING


def test_routine_is_left_out_unless_it_proves_something() -> None:
    run = Run()
    run.at(0, JobMoved(job="job_1", operation="op-1", before="queued", after="running", cause="schedule"))
    run.at(0, LeaseNoted(worker="w1", operation="op-1", what="taken", fence=1))
    run.records(0, "observing", "observing", entry="intent")
    assert run.told() == []
    finding = Finding(rule="a-rule", requirement="W1.1", message="see", facts=(0, 1, 2))
    assert texts(run.told(finding))[:3] == [
        "provider job_1 goes from queued to running (schedule)",
        "w1 lease on op-1 taken (fence 1)",
        "w1 records of op-1 (intent, observing): because",
    ]


def test_a_lease_that_changes_hands_is_told() -> None:
    run = Run()
    for worker, fence in (("w1", 1), ("w1", 2), ("w2", 3)):
        run.at(fence, LeaseNoted(worker=worker, operation="op-1", what="taken", fence=fence, lasts_s=2))
    run.at(4, LeaseNoted(worker="w1", operation="op-1", what="lost", fence=2))
    assert texts(run.told()) == ["w2 lease on op-1 taken (fence 3), for 2 s", "w1 lease on op-1 lost (fence 2)"]


def test_what_a_frozen_worker_and_its_successor_do_next_is_pointed_out() -> None:
    run = Run().at(0, LeaseNoted(worker="w1", operation="op-1", what="taken", fence=1))
    run.asks(1, Endpoint.STATUS)
    run.struck(1, "stop", Endpoint.STATUS, CommitPoint.RECEIVED).at(1, WorkerStopped(worker="w1"))
    run.hears(1, Endpoint.STATUS)
    run.at(3, LeaseNoted(worker="w2", operation="op-1", what="taken", fence=2))
    run.at(4, WorkerResumed(worker="w1"), LeaseNoted(worker="w1", operation="op-1", what="lost", fence=1))
    assert [(line.mark, line.actor, line.text) for line in run.told()[2:]] == [
        (Mark.PLAIN, "w1", "is stopped: frozen, its timers run on"),
        (Mark.PLAIN, "w1", "status of op-1: 200 running, to be read once it is resumed"),
        (Mark.NEXT, "w2", "lease on op-1 taken (fence 2)"),
        (Mark.PLAIN, "w1", "is resumed"),
        (Mark.NEXT, "w1", "lease on op-1 lost (fence 1)"),
    ]


def test_a_webhook_and_its_answer_are_one_line() -> None:
    run = Run()
    run.at(1, EventSent(delivery=1, event="evt_1", type="job.succeeded", job="job_1", operation="op-1", attempt=1))
    run.at(1, EventDelivered(delivery=1, event="evt_1", worker="w1", status=204))
    assert texts(run.told()) == ["provider sends webhook evt_1 job.succeeded of job_1, attempt 1: w1 answers 204"]


def test_a_forged_webhook_is_not_told_as_the_providers() -> None:
    run = Run().at(
        1,
        EventSent(
            delivery=1, event="evt_1", type="job.succeeded", job="job_1", operation="op-1", attempt=1, genuine=False
        ),
    )
    assert texts(run.told()) == ["forger sends webhook evt_1 job.succeeded of job_1, attempt 1, with a false signature"]


def test_a_result_that_is_not_what_was_made_is_told() -> None:
    run = Run()
    moved = JobMoved(
        job="job_1",
        operation="op-1",
        before="running",
        after="succeeded",
        cause="schedule",
        result_sha256="aa",
        records=3,
    )
    run.at(1, moved, ResultRead(job="job_1", operation="op-1", exchange=1, sha256="aa", size_bytes=9, time=1))
    run.at(2, ResultRead(job="job_1", operation="op-1", exchange=2, sha256="bb", size_bytes=9, time=1))
    assert texts(run.told()) == [
        "provider job_1 goes from running to succeeded (schedule) with 3 records",
        "provider serves the result of job_1: 9 bytes, sha256 bb",
    ]


def test_the_end_tells_claims_and_books_side_by_side() -> None:
    run = Run()
    run.at(
        9,
        FaultsHealed(struck=1, planned=2),
        Claimed(
            operation="op-1",
            worker="w1",
            state="succeeded",
            at_rest=True,
            remote_job="job_1",
            records=5,
            failed_items=2,
        ),
        LedgerRead(job="job_1", operation="op-1", state="succeeded"),
        RunEnded(at_rest=True, drained_s=1.25),
    )
    assert texts(run.told()) == [
        "harness heals: no more faults from here; 1 of 2 struck",
        "w1 claims op-1 succeeded as job_1, 5 records, 2 of them failed",
        "provider holds job_1 for op-1, succeeded",
        "harness ends the run: everything is at rest 1.25 s after healing",
    ]


def test_an_answer_that_comes_after_other_things_says_what_it_answers() -> None:
    run = Run().asks(0, Endpoint.CANCEL)
    run.at(0, CancelTaken(job="job_1", operation="op-1", exchange=1, effect="cancelling"))
    run.hears(0.2, Endpoint.CANCEL, status=202, state="cancelling")
    assert texts(run.told()) == [
        "w1 cancel of op-1",
        "provider receives the cancel of job_1: it will be cancelled unless it ends first",
        "w1 cancel of op-1: 202 cancelling",
    ]


@pytest.mark.parametrize(
    ("fact", "text"),
    [
        (Commanded(command="submit", operation="op-1", worker="w1"), "tells w1 to submit op-1"),
        (
            Commanded(command="submit", operation="op-1", worker="w1", repeat_of=True),
            "tells w1 to submit op-1 once more",
        ),
        (WorkerStarted(worker="w1", life=2), "starts again (life 2)"),
        (WorkerEnded(worker="w1", how="killed"), "is killed"),
        (WorkerEnded(worker="w1", how="crashed", detail="exit 3"), "crashes by itself: exit 3"),
        (ProcessReaped(worker="w1", status="signal 9"), "its process ended with signal 9"),
        (
            CommandRefused(command="submit", operation="op-1", worker="w1", reason="known with another request"),
            "refuses to submit op-1: known with another request",
        ),
        (SecretSaid(worker="w1", where="log"), "says a secret in a log"),
        (SubjectComplained(worker="w1", message="no JSON"), "complains: no JSON"),
        (
            RunStarted(
                scenario="a", mode="process", seed=7, contract={"name": "careful"}, timing={}, credential="", origin=""
            ),
            "starts a, process, seed 7, contract careful",
        ),
    ],
)
def test_what_happened_to_workers_and_what_they_said_is_always_told(fact: AnyFact, text: str) -> None:
    (line,) = tell([Entry(0, 0.0, fact)])
    assert line.text == text


def test_every_kind_of_fact_can_be_put_in_words() -> None:
    assert tellers() == set(get_args(AnyFact))
