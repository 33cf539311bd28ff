"""What looks like a breach and is none: histories that exploration or a correct client showed, each beside the nearest
one that is a breach."""

from typing import Any

import pytest

from fake_provider.facts import AnswerEnded, Endpoint, Fate, JobCreated
from tests.harness.rules.cases.case import Told
from tests.harness.rules.cases.collecting import missed
from tests.harness.rules.cases.observing import heeding
from tests.harness.rules.histories import BODY, OTHER_TOKEN, TOKEN, Story

NO_KEYS = {"mechanism": "none"}
SHORT_KEYS = {"key_lifetime_s": 5}
NO_WAY_BACK = {"idempotency": SHORT_KEYS, "lookup": {"by": "none", "authoritative": False}}


def overtaken(story: Story, *, looked_up_at: float | None) -> Story:
    """A create takes long; one that is sent meanwhile makes the first job, and then the first one makes another."""
    story.call(Endpoint.CREATE, fate=None, request={"fingerprint": BODY})
    if looked_up_at is not None:
        story.look_up(None, at=looked_up_at)
    story.create(token=None, at=1)
    return story.add(JobCreated(job="job-2", operation="op-1", exchange=0, fingerprint=BODY), at=3)


def reads_again(story: Story) -> Story:
    """A webhook comes; the job is read when it was due, and at once again."""
    return story.webhook("job.running").poll(at=2, retry_after=1).poll()


def both_late(story: Story, *, looked_up_between: bool) -> Story:
    """Two creates arrive long after they were given up, and after another look-up had found nothing of either."""
    story.under(idempotency=NO_KEYS).call(Endpoint.CREATE, fate=None, request={"fingerprint": BODY})
    if looked_up_between:
        story.look_up(None, at=1)
    story.call(Endpoint.CREATE, fate=None, request={"fingerprint": BODY}, at=1).look_up(None, at=3)
    story.add(JobCreated(job="job-1", operation="op-1", exchange=0, fingerprint=BODY), at=5)
    return story.add(
        JobCreated(job="job-2", operation="op-1", exchange=2 if looked_up_between else 1, fingerprint=BODY), at=6
    )


def refused_twice(story: Story, problem: str) -> Story:
    """A create is lost, and its retry answered 422."""
    answer = {"status": 422, "problem": problem}
    story.lost().call(Endpoint.CREATE, request={"token": TOKEN, "fingerprint": BODY}, answer=answer)
    return story.claimed("failed")


def harmed_by(story: Story, kind: str) -> Story:
    """A provider that states nothing of its results serves a damaged one, and the client claims success."""
    story.under(result={"checksum": False, "size": False, "record_count": False})
    return story.create().moved("succeeded").poll("succeeded").fetch(sha="00", faults=(kind,)).claimed("succeeded")


def ended_inside(story: Story, *faults: str) -> Story:
    """The result comes inside the status, and the client claims success."""
    return came_inside(story, *faults).claimed("succeeded")


def came_inside(story: Story, *faults: str) -> Story:
    """The result comes inside the status."""
    return story.under(result={"kind": "inline"}).create().moved("succeeded").poll("succeeded", faults=faults)


def looked_up_inside(story: Story) -> Story:
    """A look-up finds the job when it has succeeded, and its result is inside."""
    found = {"status": 200, "job": "job-1", "canonical_state": "succeeded"}
    return story.under(result={"kind": "inline"}).lost().moved("succeeded").call(Endpoint.LOOKUP, answer=found, at=2)


def asked_for_silence(story: Story, seconds: float) -> Story:
    """The create is answered 503, with a Retry-After."""
    return story.told("submit").create(status=503, job=None, retry_after=seconds)


def taken_over(story: Story) -> Story:
    """The lease of the first worker has run out, and the second one has taken it."""
    return story.lease("taken", 1).create().lease("taken", 2, by="w2", at=3)


def reading(story: Story, state: str) -> Story:
    """A webhook has led to a read before; the event of the job's end comes while the status is read once more."""
    story.under(status={"retry_after_s": 12}).create(retry_after=12)
    story.webhook("job.running", event="evt-0", at=1).poll(retry_after=1)
    number = story.under_way(Endpoint.STATUS, at=4)
    return story.webhook(at=4).answered(number, Endpoint.STATUS, state)


def two_errors(story: Story) -> Story:
    """Two attempts to deliver an event meet with an error."""
    return story.create().webhook(at=1, answered=503).webhook(at=2, answered=503)


def slow_to_leave(leaving_s: float) -> dict[str, object]:
    return {"status": 200, "canonical_state": "running", "retry_after_s": 1, "leaving_s": leaving_s}


FAILED: dict[str, Any] = {"job": "job-1", "status": 200, "canonical_state": "failed"}


def collected(story: Story, *, kind: str = "endpoint", at: float = 1, again: bool = False) -> Story:
    """The job is seen to have succeeded, and its result is about to be read."""
    if not again:
        story.under(result={"kind": kind}).told("submit").create()
    return story.poll("succeeded", at=story.time if again else at)


def expired(story: Story, *, gives_up: bool = True) -> Story:
    """The address of the result has expired."""
    story.fetch(status=410, problem="link_expired")
    return story.claimed("result_unavailable") if gives_up else story


def misdirected(story: Story, *, faults: tuple[str, ...] = ()) -> Story:
    """The result was asked for at an address that is none, and is given up."""
    return story.fetch(status=403, problem="link_invalid", faults=faults).claimed("result_unavailable")


def undecided(story: Story, decided: str = "observing") -> Story:
    """A person decides about a create that nobody could find out about."""
    return story.lost().told("decide", decided=decided, at=1)


def timed_out(story: Story, *, at: float) -> Story:
    """The time-out is on record since a moment."""
    return story.noted("observing", "result_timed_out", job="job-1", at=at)


def gone(story: Story, *, kind: str) -> Story:
    """The result is no longer there."""
    return story.under(result={"kind": kind}).create().poll("succeeded", at=1).fetch(status=410)


def listed(story: Story, *, times: int) -> Story:
    """A known job is observed by looking it up, three times a second."""
    story.create()
    for number in range(times):
        story.look_up(at=1 + 0.3 * number)
    return story


EXCUSED: list[tuple[str, str, Told, Told]] = [
    (
        "one-job-per-operation",
        "a look-up came between the two creates, and another one after both",
        lambda s: both_late(s, looked_up_between=True),
        lambda s: both_late(s, looked_up_between=False),
    ),
    (
        "obeys-retry-after",
        "the answer was on its way out for a while: the client counts from when it had it",
        lambda s: s.call(Endpoint.STATUS, job="job-1", answer=slow_to_leave(0.2), at=2).poll(at=2.8),
        lambda s: s.call(Endpoint.STATUS, job="job-1", answer=slow_to_leave(0.2), at=2).poll(at=2.7),
    ),
    (
        "token-has-128-bits",
        "the tokens share the millisecond in which they were made, and were drawn apart otherwise",
        lambda s: s.create(token="0197c1a2-7b3e-7c51-9d0f-5b8a6c3e21f4").create(
            token="0197c1a2-7b3e-7f0a-8e62-c4d97b15a083", op="op-2", job="job-2"
        ),
        lambda s: s.create(token="nightly-report-of-region-0001").create(
            token="nightly-report-of-region-0002", op="op-2", job="job-2"
        ),
    ),
    (
        "token-has-128-bits",
        "hyphen and underscore are digits of base64url, in which 22 hold 128 bits",
        lambda s: s.create(token="K1DR46oW0_Uah8dusq-Pug"),
        lambda s: s.create(token="k1dr46ow0_uah8dusq-pug"),
    ),
    (
        "withdrawn-only-if-never-sent",
        "a stop command came before anything was sent",
        lambda s: s.told("submit").told("cancel").claimed("withdrawn", job=None, at=1),
        lambda s: s.told("submit").claimed("withdrawn", job=None, at=1),
    ),
    (
        "failed-only-if-remote-failed",
        "a retry is told that the request is invalid, not that its token is taken",
        lambda s: refused_twice(s, "invalid_request"),
        lambda s: refused_twice(s, "idempotency_key_reused"),
    ),
    (
        "harmed-result-not-taken",
        "nothing is stated that would give a changed character away",
        lambda s: harmed_by(s, "result_wrong_checksum"),
        lambda s: harmed_by(s, "result_cut_short"),
    ),
    (
        "harmed-result-not-taken",
        "the result came inside the status undamaged",
        ended_inside,
        lambda s: ended_inside(s, "result_records_missing"),
    ),
    (
        "genuine-webhook-not-refused",
        "two attempts meet with an error, and the third does not",
        lambda s: two_errors(s).poll(at=3).webhook(at=4),
        lambda s: two_errors(s).poll(at=3).webhook(at=4, answered=503),
    ),
    (
        "genuine-webhook-not-refused",
        "three attempts meet with an error, and meanwhile the client does nothing at all",
        lambda s: two_errors(s).webhook(at=4, answered=503),
        lambda s: two_errors(s).poll(at=3).webhook(at=4, answered=503),
    ),
    (
        "human-decision-only-if-stuck",
        "a worker died over the create, and whoever carries on may not know all",
        lambda s: s.told("submit").lost().killed(at=0.5).claimed("human_decision_required", by="w2", why="?", at=1),
        lambda s: s.told("submit").lost().claimed("human_decision_required", by="w2", why="?", at=1),
    ),
    (
        "human-decision-only-if-stuck",
        "the provider no longer knows the job that it had named",
        lambda s: s.told("submit").create().poll(None, status=410, at=5).claimed("human_decision_required", why="?"),
        lambda s: s.told("submit").create().poll(None, status=500, at=5).claimed("human_decision_required", why="?"),
    ),
    (
        "human-decision-only-if-stuck",
        "nothing was tried until the create deadline, since the provider had asked for silence until then",
        lambda s: asked_for_silence(s, 9).claimed("human_decision_required", why="?", at=11),
        lambda s: asked_for_silence(s, 1).claimed("human_decision_required", why="?", at=11),
    ),
    (
        "human-decision-only-if-stuck",
        "nothing was tried until the create deadline, since the token would have been too old",
        lambda s: s.under(**NO_WAY_BACK).told("submit").lost().claimed("human_decision_required", why="?", at=11),
        lambda s: s.told("submit").lost().claimed("human_decision_required", why="?", at=11),
    ),
    (
        "timed-out-only-if-observed",
        "the job was known so late that no read was due",
        lambda s: s.told("submit").lost().create(at=13).claimed("result_timed_out", at=20),
        lambda s: s.told("submit").lost().create(at=12).claimed("result_timed_out", at=20),
    ),
    (
        "timed-out-only-if-observed",
        "the worker that knew the job died, and whoever carried on came too late",
        lambda s: s.told("submit").create().killed(at=1).started(at=19).claimed("result_timed_out", at=20),
        lambda s: s.told("submit").create().claimed("result_timed_out", at=20),
    ),
    (
        "unavailable-only-after-tries",
        "the result could be read once, and that answer was lost",
        lambda s: missed(s.under(result={"kind": "one_time"}), fate="lost").claimed("result_unavailable"),
        lambda s: missed(s, fate="lost").claimed("result_unavailable"),
    ),
    (
        "unavailable-only-after-tries",
        "the job itself was lost before its result was asked for",
        lambda s: (
            s.told("submit")
            .create()
            .moved("succeeded")
            .poll("succeeded")
            .poll(status=404, at=1)
            .claimed("result_unavailable")
        ),
        lambda s: s.told("submit").create().moved("succeeded").poll("succeeded").claimed("result_unavailable", at=1),
    ),
    (
        "unavailable-only-after-tries",
        "the result deadline was near",
        lambda s: missed(s, status=500).claimed("result_unavailable", at=13),
        lambda s: missed(s, status=500).claimed("result_unavailable", at=12),
    ),
    (
        "finished-result-not-lost",
        "only a look-up brought the result with it, and no status read did",
        lambda s: looked_up_inside(s).claimed("result_timed_out"),
        lambda s: looked_up_inside(s).poll("succeeded").claimed("result_timed_out"),
    ),
    (
        "finished-result-not-lost",
        "the result inside the status came damaged",
        lambda s: came_inside(s, "result_cut_short").claimed("result_validation_failed"),
        lambda s: came_inside(s).claimed("result_validation_failed"),
    ),
    (
        "final-event-leads-to-a-read",
        "the worker died after it had taken the event",
        lambda s: heeding(s).killed(at=5).started(at=6).poll("succeeded", at=20),
        lambda s: heeding(s).poll("succeeded", at=20),
    ),
    (
        "final-event-leads-to-a-read",
        "a person is to decide first",
        lambda s: heeding(s).noted("observing", "human_decision_required").ended(at=20),
        lambda s: heeding(s).noted("observing", "observing").ended(at=20),
    ),
    (
        "final-event-leads-to-a-read",
        "a read that was under way has told the end",
        lambda s: reading(s, "succeeded").ended(at=20),
        lambda s: reading(s, "running").ended(at=20),
    ),
    (
        "final-event-leads-to-a-read",
        "the cancel deadline had put the operation to rest",
        lambda s: heeding(s).told("cancel").poll("succeeded", at=20),
        lambda s: heeding(s).poll("succeeded", at=20),
    ),
    (
        "observation-continues-after-cancel",
        "a Retry-After of the create's answer holds the client beyond the cancel's deadline",
        lambda s: s.create(retry_after=600).told("cancel").cancel().ended(at=60),
        lambda s: s.create(retry_after=1).told("cancel").cancel().ended(at=60),
    ),
    (
        "stop-command-acted-upon",
        "the worker died at once, and nobody was back before the cancel deadline",
        lambda s: s.create().told("cancel", at=1).killed(at=2).started(at=8).ended(at=60),
        lambda s: s.create().told("cancel", at=1).killed(at=2).started(at=2).ended(at=60),
    ),
    (
        "stop-command-acted-upon",
        "the worker died when it was about to call, and says that it does not know",
        lambda s: (
            s.create()
            .told("cancel", at=1)
            .killed(at=2)
            .started(at=2)
            .claimed("cancellation_unconfirmed", at=9)
            .ended(at=60)
        ),
        lambda s: s.create().told("cancel", at=1).claimed("cancellation_unconfirmed", at=9).ended(at=60),
    ),
    (
        "stop-command-acted-upon",
        "the worker died before it could make the command durable",
        lambda s: s.create().told("cancel", at=1).killed(at=1).started(at=1).ended(at=60),
        lambda s: s.create().told("cancel", at=1).killed(at=1.5).started(at=1.5).ended(at=60),
    ),
    (
        "stop-command-acted-upon",
        "the command is repeated after a worker died over it, and too late for anything to be said",
        lambda s: s.create().told("cancel", at=1).killed(at=1).started(at=1).told("cancel", at=59).ended(at=60),
        lambda s: s.create().told("cancel", at=1).killed(at=1).started(at=1).told("cancel", at=2).ended(at=60),
    ),
    (
        "stop-command-acted-upon",
        "the command is repeated after a worker died when it was about to call, and nobody knows whether it did",
        lambda s: (
            s.create()
            .told("cancel", at=1)
            .killed(at=2)
            .started(at=2)
            .told("cancel", at=3)
            .claimed("cancellation_unconfirmed", at=9)
            .ended(at=60)
        ),
        lambda s: s.create().told("cancel", at=1).killed(at=2).started(at=2).told("cancel", at=3).ended(at=60),
    ),
    (
        "stop-command-acted-upon",
        "a Retry-After holds the client beyond the time in which it would act",
        lambda s: s.told("cancel").create(retry_after=600).ended(at=60),
        lambda s: s.told("cancel").create(retry_after=1).ended(at=60),
    ),
    (
        "backs-off",
        "the body of an answer is broken, and its Retry-After is not",
        lambda s: [s.create(), *(s.poll(at=at, retry_after=1, faults=("invalid_json",)) for at in range(1, 12))],
        lambda s: [s.create(), *(s.poll(at=at, faults=("invalid_json",)) for at in range(1, 12))],
    ),
    (
        "backs-off",
        "the longest gap so far has grown, though the others have not; none is shorter than the first delay",
        lambda s: [s.create().poll(at=1), *(s.poll(at=at) for at in (1.9, 2.4, 2.9, 3.4, 3.9, 4.4))],
        lambda s: [s.create().poll(at=1), *(s.poll(at=1.9 + number / 10) for number in range(9))],
    ),
    (
        "result-retrieved-before-success",
        "the result is at another origin, and was fetched there without the credential",
        lambda s: s.create().poll("succeeded", at=1).redirected().elsewhere(credential=None).claimed("succeeded"),
        lambda s: s.create().poll("succeeded", at=1).redirected().claimed("succeeded"),
    ),
    (
        "observation-continues-after-cancel",
        "the job is observed by look-ups, which show its state too",
        lambda s: s.create().told("cancel").cancel().look_up(at=2).ended(at=60),
        lambda s: s.create().told("cancel").look_up().cancel(at=2).ended(at=60),
    ),
    (
        "no-create-once-accepted",
        "a person has decided to find out anew, and the first try came to nothing",
        lambda s: s.create().told("decide", at=5, decided="reconciliation").lost().lost(at=7),
        lambda s: s.create().told("decide", at=5, decided="reconciliation").create().lost(at=7),
    ),
    (
        "no-resend-after-key-lifetime",
        "a person has decided to try again, and the first try came to nothing",
        lambda s: s.under(idempotency=SHORT_KEYS).lost().told("decide", decided="create_pending").lost(at=7).lost(at=9),
        lambda s: s.under(idempotency=SHORT_KEYS).lost().told("decide", decided="create_pending").lost(at=1).lost(at=9),
    ),
    (
        "no-create-after-rejection",
        "a re-send is answered 404, which says nothing of the first attempt",
        lambda s: s.lost().create(status=404, at=1).create(at=2),
        lambda s: s.lost().create(status=422, at=1).create(at=2),
    ),
    (
        "accepted-only-if-answered",
        "a person who asked the provider names the job",
        lambda s: (
            s.lost().told("decide", decided="observing").noted("human_decision_required", "observing", job="job-1")
        ),
        lambda s: s.lost().told("reconcile").noted("human_decision_required", "observing", job="job-1"),
    ),
    (
        "one-job-per-operation",
        "a person decides to create anew; to ask for another look is no such decision",
        lambda s: s.lost().told("decide", decided="create_pending").create(at=9, job="job-2", token=OTHER_TOKEN),
        lambda s: s.lost().told("reconcile").create(at=9, job="job-2", token=OTHER_TOKEN),
    ),
    (
        "no-blind-resend",
        "a person decides to create anew; to ask for another look is no such decision",
        lambda s: s.under(idempotency=NO_KEYS).lost().told("decide", decided="create_pending").create(at=9),
        lambda s: s.under(idempotency=NO_KEYS).lost().told("reconcile").create(at=9),
    ),
    (
        "no-create-after-deadline",
        "a person asks for another look",
        lambda s: s.lost().told("reconcile", at=11).create(at=12),
        lambda s: s.lost().create(at=12),
    ),
    (
        "result-retrieved-before-success",
        "a person decides that it succeeded; to ask for another look is no such decision",
        lambda s: s.create().told("decide", decided="succeeded").claimed("succeeded"),
        lambda s: s.create().told("reconcile").claimed("succeeded"),
    ),
    (
        "one-job-per-operation",
        "the client refuses the decision: then nobody decided anything, and it holds to that",
        lambda s: s.lost().told("decide", decided="create_pending").create(at=9, job="job-2", token=OTHER_TOKEN),
        lambda s: s.lost().told("decide").refused("decide").create(at=9, job="job-2", token=OTHER_TOKEN),
    ),
    (
        "tries-per-create-limited",
        "each answer asks to come back at once",
        lambda s: [s.create(status=503, job=None, retry_after=0) for _ in range(8)],
        lambda s: [s.create(status=503, job=None) for _ in range(8)],
    ),
    (
        "polls-per-job-limited",
        "workers are killed again and again, and each that begins reads",
        lambda s: [s.create(), *(s.poll(at=1).killed().started() for _ in range(8))],
        lambda s: [s.create(), *(s.poll(at=1) for _ in range(8))],
    ),
    (
        "one-trace-per-operation",
        "another operation has another trace",
        lambda s: s.create().create(op="op-2", job="job-2", trace="0" * 31 + "1"),
        lambda s: s.create().create(op="op-2", job="job-2"),
    ),
    (
        "one-job-per-operation",
        "the create that a look-up had proved to be lost arrives after all, behind the one that was sent for it",
        lambda s: overtaken(s.under(idempotency=NO_KEYS), looked_up_at=1),
        lambda s: overtaken(s.under(idempotency=NO_KEYS), looked_up_at=None),
    ),
    (
        "one-job-per-operation",
        "a look-up proves that a create is lost once it is given up, and nothing while its answer is waited for",
        lambda s: overtaken(s.under(idempotency=NO_KEYS), looked_up_at=1),
        lambda s: overtaken(s.under(idempotency=NO_KEYS), looked_up_at=0.5),
    ),
    (
        "obeys-retry-after",
        "a webhook comes while a call is under way, and is taken up after the read that was due",
        lambda s: reads_again(s.create().poll(at=1, retry_after=1).call(Endpoint.CANCEL, fate=None)),
        lambda s: reads_again(s.create().poll(at=1, retry_after=1).cancel()),
    ),
    (
        "obeys-retry-after",
        "a person decides to go on at once",
        lambda s: (
            s.create(status=429, job=None, retry_after=600).told("decide", at=5, decided="reconciliation").create()
        ),
        lambda s: s.create(status=429, job=None, retry_after=600).told("reconcile", at=5).create(),
    ),
    (
        "no-poll-after-result-deadline",
        "the worker that was told to cancel was stopped, and counts the time to wait from when it took that up",
        lambda s: s.create().told("cancel", at=16).stopped().resumed(at=20).poll(at=22).poll(at=24).poll(at=25),
        lambda s: s.create().told("cancel", at=16).poll(at=22).poll(at=24).poll(at=25),
    ),
    (
        "no-poll-after-result-deadline",
        "the job has ended in time, and the status is read for where its result now is",
        lambda s: s.create().poll("succeeded", at=19).poll(at=21).poll(at=22),
        lambda s: s.create().poll("running", at=19).poll(at=21).poll(at=22),
    ),
    (
        "no-call-at-rest",
        "a command given to a stopped worker is taken up when it is resumed",
        lambda s: (
            s.create()
            .stopped()
            .told("reconcile")
            .noted("observing", "result_timed_out", at=20, by="w2")
            .resumed(at=35)
            .poll()
        ),
        lambda s: (
            s.create()
            .told("reconcile")
            .stopped()
            .noted("observing", "result_timed_out", at=20, by="w2")
            .resumed(at=35)
            .poll()
            .poll()
        ),
    ),
    (
        "no-call-at-rest",
        "the command came at the moment at which the deadline passed, and is taken up after that",
        lambda s: s.create().told("reconcile", at=20).noted("observing", "result_timed_out").poll().poll(at=21),
        lambda s: s.create().told("reconcile", at=19).noted("observing", "result_timed_out", at=20).poll().poll(at=21),
    ),
    (
        "rest-left-only-on-command",
        "a call was under way when the command came, and the state was reached as soon as it was given up",
        lambda s: (
            s.call(Endpoint.CANCEL, fate="lost", job="job-1")
            .told("reconcile")
            .noted("result_collecting", "result_unavailable", at=1)
            .noted("result_unavailable", "result_collecting")
        ),
        lambda s: (
            s.told("reconcile")
            .noted("result_collecting", "result_unavailable", at=1)
            .noted("result_unavailable", "result_collecting")
        ),
    ),
    (
        "rest-left-only-on-command",
        "the worker that was told was stopped before it could take the command up",
        lambda s: (
            s.told("reconcile")
            .stopped()
            .noted("result_collecting", "result_unavailable", at=2, by="w2")
            .resumed(at=3)
            .noted("result_unavailable", "result_collecting")
        ),
        lambda s: (
            s.told("reconcile")
            .noted("result_collecting", "result_unavailable", at=2, by="w2")
            .noted("result_unavailable", "result_collecting", at=3)
        ),
    ),
    (
        "finished-result-not-lost",
        "what came was the result of another operation's job",
        lambda s: s.create().moved("succeeded").create(op="op-2").fetch(op="op-2").claimed("failed", op="op-2"),
        lambda s: s.create(op="op-2").moved("succeeded").fetch(op="op-2").claimed("failed", op="op-2"),
    ),
    (
        "one-trace-per-operation",
        "the provider gave the same job to two operations, and each reads it under its own trace",
        lambda s: s.create().create(op="op-2", body=BODY, trace="b" * 32).poll(at=1, trace="b" * 32),
        lambda s: s.create().create(op="op-2", job="job-2", trace="b" * 32).poll(at=1, trace="b" * 32),
    ),
    (
        "obeys-retry-after",
        "it is a date, and the clock of whoever reads it is ahead; seconds are as long by any clock",
        lambda s: s.clock_set(3600).create(retry_after=5, dated=True).poll(at=1),
        lambda s: s.clock_set(3600).create(retry_after=5).poll(at=1),
    ),
    (
        "obeys-retry-after",
        "the clock was put forward while the client waited, and not before",
        lambda s: s.create(retry_after=5).clock_set(3600).poll(at=1),
        lambda s: s.clock_set(3600).create(retry_after=5).poll(at=1),
    ),
    (
        "obeys-retry-after",
        "the clock was put forward while the client waited, and not back",
        lambda s: s.create(retry_after=5).clock_set(3600).poll(at=1),
        lambda s: s.create(retry_after=5).clock_set(-3600).poll(at=1),
    ),
    (
        "obeys-retry-after",
        "the clock was put forward by as much as the read comes early, and not by less",
        lambda s: s.create(retry_after=5).clock_set(4).poll(at=1),
        lambda s: s.create(retry_after=5).clock_set(3).poll(at=1),
    ),
    (
        "restart-continues-schedule",
        "the clock was put forward while nobody ran",
        lambda s: s.create(retry_after=5).killed(at=1).clock_set(3600).started().poll(),
        lambda s: s.create(retry_after=5).killed(at=1).started().poll(),
    ),
    (
        "backs-off",
        "the clock was put forward between two reads",
        lambda s: [s.create(), *(s.clock_set(3600 * at).poll(at=1 + at / 10) for at in range(9))],
        lambda s: [s.create(), *(s.poll(at=1 + at / 10) for at in range(9))],
    ),
    (
        "polls-per-job-limited",
        "every date seems to have passed by a clock that is ahead",
        lambda s: [s.clock_set(3600).create(), *(s.poll(at=1, retry_after=5, dated=True) for _ in range(8))],
        lambda s: [s.clock_set(3600).create(), *(s.poll(at=1, retry_after=5) for _ in range(8))],
    ),
    (
        "no-create-after-deadline",
        "the clock was set back meanwhile; one that is behind all the while measures as well as any",
        lambda s: s.lost().clock_set(-3600, at=1).create(at=12),
        lambda s: s.clock_set(-3600).lost().create(at=12),
    ),
    (
        "no-resend-after-key-lifetime",
        "the clock was set back meanwhile",
        lambda s: s.under(idempotency={"key_lifetime_s": 5}).lost().clock_set(-3600, at=1).create(at=8),
        lambda s: s.under(idempotency={"key_lifetime_s": 5}).lost().clock_set(3600, at=1).create(at=8),
    ),
    (
        "stale-worker-does-nothing",
        "it writes down a stop command that was given to it, and does no more",
        lambda s: taken_over(s).told("cancel").noted("observing", "cancel_requested"),
        lambda s: taken_over(s).told("cancel", by="w2").noted("observing", "cancel_requested"),
    ),
    (
        "stale-worker-does-nothing",
        "it writes down that a person wants the result tried again, once",
        lambda s: taken_over(s).told("reconcile").noted("result_unavailable", "result_collecting"),
        lambda s: (
            taken_over(s)
            .told("reconcile")
            .noted("result_unavailable", "result_collecting")
            .noted("result_collecting", "result_unavailable")
        ),
    ),
    (
        "no-cancel-after-terminal",
        "only the create's answer said that the job had failed, and a client may insist on a status read",
        lambda s: s.create(state="failed", status=200).told("cancel", at=1).cancel(at=1),
        lambda s: s.create(state="failed", status=200).poll("failed").told("cancel", at=1).cancel(at=1),
    ),
    (
        "no-poll-after-result-deadline",
        "the worker that the first answer named the job to died over it, and its successor counts from the next answer",
        lambda s: s.create().killed().started(at=4).create(by="w1").poll(at=22).poll(at=23),
        lambda s: s.create().killed(at=1).started(at=4).create(by="w1").poll(at=22).poll(at=23),
    ),
    (
        "no-poll-after-terminal",
        "the read that was to confirm the end was answered 502",
        lambda s: s.create().poll("succeeded", at=1).poll(status=502, at=2).poll("succeeded", at=3),
        lambda s: s.create().poll("succeeded", at=1).poll("succeeded", at=2).poll("succeeded", at=3),
    ),
    (
        "no-poll-after-result-deadline",
        "the clock was set back meanwhile",
        lambda s: s.create().clock_set(-3600, at=1).poll(at=22).poll(at=24).poll(at=26),
        lambda s: s.create().poll(at=22).poll(at=24).poll(at=26),
    ),
    (
        "timed-out-only-after-deadline",
        "the clock was put forward since the submit; what one that was ahead before measures is right",
        lambda s: s.told("submit").create().clock_set(3600, at=2).noted("observing", "result_timed_out"),
        lambda s: s.clock_set(3600).told("submit").create().noted("observing", "result_timed_out", at=2),
    ),
    (
        "cancel-unconfirmed-only-after-deadline",
        "the clock was put forward since the command",
        lambda s: s.told("cancel").create().clock_set(3600, at=2).noted("cancelling", "cancellation_unconfirmed"),
        lambda s: s.told("cancel").create().noted("cancelling", "cancellation_unconfirmed", at=2),
    ),
    (
        "reaches-rest-after-faults-stop",
        "the clock was set back, and its deadlines are not over yet",
        lambda s: s.told("submit").create().clock_set(-3600, at=1).healed().claimed("observing", at=90).ended(at=90),
        lambda s: s.told("submit").create().healed(at=1).claimed("observing", at=90).ended(at=90),
    ),
    (
        "stop-command-acted-upon",
        "the clock was set back, and what is to be done next is not due yet",
        lambda s: s.told("cancel").create().clock_set(-3600, at=0.1).ended(at=60),
        lambda s: s.told("cancel").create().clock_set(3600, at=0.1).ended(at=60),
    ),
    (
        "observation-continues-after-cancel",
        "the clock was set back, and the next read is not due yet",
        lambda s: s.create().told("cancel").cancel().clock_set(-3600, at=0.1).ended(at=60),
        lambda s: s.create().told("cancel").cancel().clock_set(3600, at=0.1).ended(at=60),
    ),
    (
        "result-read-only-after-success",
        "the contract keeps what a job had done that ended early",
        lambda s: s.under(result={"partial": True}).create().moved("cancelled").poll("cancelled", at=1).fetch(),
        lambda s: s.create().moved("cancelled").poll("cancelled", at=1).fetch(),
    ),
    (
        "result-read-only-after-success",
        "the job was seen to have ended early, and is not running still",
        lambda s: s.under(result={"partial": True}).create().moved("failed").poll("failed", at=1).fetch(),
        lambda s: s.under(result={"partial": True}).create().poll(at=1).fetch(),
    ),
    (
        "finished-result-not-lost",
        "what came was what a cancelled job had done",
        lambda s: (
            s.under(result={"partial": True})
            .create()
            .moved("cancelled")
            .poll("cancelled", at=1)
            .fetch()
            .claimed("cancelled")
        ),
        lambda s: s.succeeds().claimed("cancelled"),
    ),
    (
        "finished-result-not-lost",
        "what lies beside the result came damaged",
        lambda s: s.succeeds().annex(faults=("result_cut_short",)).claimed("result_validation_failed"),
        lambda s: s.succeeds().annex().claimed("result_validation_failed"),
    ),
    (
        "observation-continues-after-cancel",
        "the clock was put past the cancel's deadline",
        lambda s: (
            s.create().told("cancel").cancel().clock_set(9, at=1).claimed("cancellation_unconfirmed", at=60).ended()
        ),
        lambda s: s.create().told("cancel").cancel().claimed("cancellation_unconfirmed", at=60).ended(),
    ),
    (
        "stop-command-acted-upon",
        "the clock was put past the cancel's deadline",
        lambda s: s.told("cancel").create().clock_set(9, at=1).claimed("cancellation_unconfirmed", at=60).ended(),
        lambda s: s.told("cancel").create().claimed("cancellation_unconfirmed", at=60).ended(),
    ),
    (
        "one-job-per-operation",
        "the clock was set back, and by it the token was young when the create was sent again",
        lambda s: s.under(idempotency={"key_lifetime_s": 5}).lost().clock_set(-3600, at=1).lost(at=8, job="job-2"),
        lambda s: s.under(idempotency={"key_lifetime_s": 5}).lost().lost(at=8, job="job-2"),
    ),
    (
        "webhook-out-of-time-refused",
        "by a clock that is wrong it may be in time",
        lambda s: s.create().clock_set(-600).webhook(skew=-600),
        lambda s: s.create().clock_set(-600).clock_set(0).webhook(skew=-600),
    ),
    (
        "duplicate-webhook-answered-2xx",
        "by a clock that is wrong it is out of time; a little wrong is within the tolerance",
        lambda s: s.create().webhook().clock_set(3600).webhook(answered=400),
        lambda s: s.create().webhook().clock_set(2).webhook(answered=400),
    ),
    (
        "every-operation-is-claimed",
        "the submit of which nothing is said was refused",
        lambda s: (
            s.told("submit")
            .told("submit", op="op-2")
            .refused("submit", op="op-2")
            .create()
            .claimed("succeeded")
            .ended(at=90)
        ),
        lambda s: s.told("submit").told("submit", op="op-2").create().claimed("succeeded").ended(at=90),
    ),
    (
        "every-operation-is-claimed",
        "whoever does one thing after another may not have come to it yet",
        lambda s: s.told("submit").told("submit", op="op-2").create().claimed("succeeded").ended(at=50),
        lambda s: s.told("submit").told("submit", op="op-2").create().claimed("succeeded").ended(at=60),
    ),
    (
        "failed-only-if-remote-failed",
        "the retry is told that the request is too large, as the first attempt would have been",
        lambda s: s.lost().create(at=1, status=413, job=None).claimed("failed", job=None),
        lambda s: s.lost().create(at=1, status=404, job=None).claimed("failed", job=None),
    ),
    (
        "failed-only-if-remote-failed",
        "the first attempt was turned away, and left no doubt",
        lambda s: s.create(status=429, job=None).create(at=1, status=404, job=None).claimed("failed", job=None),
        lambda s: s.create(status=503, job=None).create(at=1, status=404, job=None).claimed("failed", job=None),
    ),
    (
        "failed-only-if-remote-failed",
        "a look-up had settled that the first attempt made no job",
        lambda s: s.lost(job=None).look_up(None, at=2).create(at=3, status=404, job=None).claimed("failed", job=None),
        lambda s: s.lost(job=None).create(at=3, status=404, job=None).claimed("failed", job=None),
    ),
    (
        "no-orphaned-jobs",
        "the provider said of the request itself that there would be no job",
        lambda s: s.lost().create(at=1, status=422, job=None).claimed("failed", job=None).ledger("running").ended(),
        lambda s: s.lost().create(at=1, status=404, job=None).claimed("failed", job=None).ledger("running").ended(),
    ),
    (
        "succeeded-only-if-remote-succeeded",
        "a job that ended early may keep what it had done, and that may be gone",
        lambda s: s.under(result={"partial": True}).create().poll("failed", at=1).claimed("result_unavailable"),
        lambda s: s.create().poll("failed", at=1).claimed("result_unavailable"),
    ),
    (
        "succeeded-only-if-remote-succeeded",
        "what a job had done that ended early is there, and it did not succeed all the same",
        lambda s: s.under(result={"partial": True}).create().poll("failed", at=1).claimed("result_validation_failed"),
        lambda s: s.under(result={"partial": True}).create().poll("failed", at=1).claimed("succeeded"),
    ),
    (
        "end-that-was-read-is-claimed",
        "the provider showed another end as well",
        lambda s: s.create().poll("succeeded", at=1).poll("failed", at=2).claimed("result_timed_out"),
        lambda s: s.create().poll("failed", at=2).claimed("result_timed_out"),
    ),
    (
        "end-that-was-read-is-claimed",
        "the worker that made the read was stopped over it, and came back to a deadline that had passed",
        lambda s: (
            s.create()
            .call(Endpoint.STATUS, job="job-1", fate=None, at=1)
            .stopped(at=1)
            .resumed(at=5)
            .add(AnswerEnded(exchange=1, worker="w1", endpoint=Endpoint.STATUS, fate=Fate.DELIVERED, **FAILED))
            .claimed("result_timed_out", at=20)
        ),
        lambda s: (
            s.create()
            .call(Endpoint.STATUS, job="job-1", fate=None, at=1)
            .add(AnswerEnded(exchange=1, worker="w1", endpoint=Endpoint.STATUS, fate=Fate.DELIVERED, **FAILED), at=5)
            .claimed("result_timed_out", at=20)
        ),
    ),
    (
        "claimed-rest-is-kept",
        "the same submit came once more, and the client makes sure",
        lambda s: s.told("submit").succeeds().claimed("succeeded").told("submit", at=5).poll("succeeded", at=6),
        lambda s: s.told("submit").succeeds().claimed("succeeded").poll("succeeded", at=6),
    ),
    (
        "claimed-rest-is-kept",
        "a webhook gave a reason to look",
        lambda s: s.succeeds().claimed("succeeded").webhook(at=5).poll("succeeded", at=6),
        lambda s: s.succeeds().claimed("succeeded").poll("succeeded", at=6),
    ),
    (
        "expired-link-renewed",
        "the deadline leaves no time for another try",
        lambda s: expired(collected(s, kind="signed_url", at=17)),
        lambda s: expired(collected(s, kind="signed_url", at=16)),
    ),
    (
        "expired-link-renewed",
        "the job was read again, and the new address had expired as well",
        lambda s: expired(collected(expired(collected(s, kind="signed_url"), gives_up=False), again=True)),
        lambda s: expired(collected(s, kind="signed_url")),
    ),
    (
        "expired-link-renewed",
        "a fault spoilt the address that the provider had given",
        lambda s: misdirected(collected(s, kind="signed_url"), faults=("retry_after",)),
        lambda s: misdirected(collected(s, kind="signed_url")),
    ),
    (
        "decision-acted-upon",
        "the client refused it",
        lambda s: undecided(s).refused("decide").claimed("human_decision_required", why="?", at=5).ended(at=30),
        lambda s: undecided(s).claimed("human_decision_required", why="?", at=5).ended(at=30),
    ),
    (
        "decision-acted-upon",
        "the run ended too soon after it",
        lambda s: undecided(s).claimed("human_decision_required", why="?", at=5).ended(at=8),
        lambda s: undecided(s).claimed("human_decision_required", why="?", at=5).ended(at=9),
    ),
    (
        "decision-acted-upon",
        "the operation is over, as was decided",
        lambda s: undecided(s, "failed").claimed("failed", at=5).ended(at=30),
        lambda s: undecided(s, "failed").claimed("cancelled", at=5).ended(at=30),
    ),
    (
        "decision-acted-upon",
        "the result that it goes on with was here already",
        lambda s: undecided(s, "result_collecting").claimed("succeeded", at=5).ended(at=30),
        lambda s: undecided(s, "result_collecting").claimed("failed", at=5).ended(at=30),
    ),
    (
        "reconcile-command-acted-upon",
        "the client refused it",
        lambda s: s.create().told("reconcile", at=30).refused("reconcile").claimed("result_timed_out").ended(at=60),
        lambda s: s.create().told("reconcile", at=30).claimed("result_timed_out").ended(at=60),
    ),
    (
        "reconcile-command-acted-upon",
        "the record shows that the operation was being worked on when it came",
        lambda s: (
            timed_out(s.create().told("reconcile", at=30), at=30.5).claimed("result_timed_out", at=31).ended(at=60)
        ),
        lambda s: timed_out(s.create(), at=25).told("reconcile", at=30).claimed("result_timed_out", at=31).ended(at=60),
    ),
    (
        "reconcile-command-acted-upon",
        "of a result that could be read once nothing may be left",
        lambda s: gone(s, kind="one_time").told("reconcile", at=30).claimed("result_unavailable").ended(at=60),
        lambda s: gone(s, kind="endpoint").told("reconcile", at=30).claimed("result_unavailable").ended(at=60),
    ),
    (
        "nothing-begun-after-a-stop",
        "an earlier attempt may have made a job, which is to be found and stopped",
        lambda s: s.lost().told("cancel", at=1).create(at=9),
        lambda s: s.told("cancel", at=1).create(at=9),
    ),
    (
        "nothing-begun-after-a-stop",
        "it was submitted once more since",
        lambda s: s.told("submit").told("cancel", at=1).told("submit", at=8).create(at=9),
        lambda s: s.told("submit").told("cancel", at=1).create(at=9),
    ),
    (
        "nothing-begun-after-a-stop",
        "a person decided otherwise since",
        lambda s: s.told("cancel", at=1).told("decide", decided="create_pending", at=8).create(at=9),
        lambda s: s.told("cancel", at=1).create(at=9),
    ),
    (
        "nothing-begun-after-a-stop",
        "the worker that was told was frozen, and the other one knows nothing of it",
        lambda s: s.told("submit", by="w2").stopped(at=0.5).told("cancel", at=1).create(at=9, by="w2"),
        lambda s: s.told("submit", by="w2").told("cancel", at=1).create(at=9, by="w2"),
    ),
    (
        "every-operation-is-claimed",
        "the worker that was to be told was frozen, and died so",
        lambda s: (
            s.stopped()
            .told("submit", op="op-2")
            .killed(at=1)
            .told("submit", by="w2")
            .create(by="w2")
            .claimed("succeeded", by="w2")
            .ended(at=90)
        ),
        lambda s: (
            s.told("submit", op="op-2")
            .killed(at=1)
            .told("submit", by="w2")
            .create(by="w2")
            .claimed("succeeded", by="w2")
            .ended(at=90)
        ),
    ),
    (
        "waits-are-capped",
        "an earlier answer had asked for a longer silence",
        lambda s: s.create().poll(status=429, state=None, at=1, retry_after=30).poll(at=2).poll(at=20),
        lambda s: s.create().poll(at=1).poll(at=2).poll(at=20),
    ),
    (
        "waits-are-capped",
        "it was no answer in which nothing was wrong: a circuit may be open",
        lambda s: s.create().poll(status=503, state=None, at=1).poll(at=20),
        lambda s: s.create().poll(at=1).poll(at=20),
    ),
    (
        "waits-are-capped",
        "a webhook would tell sooner",
        lambda s: s.under(webhooks={"enabled": True}).create().poll(at=1).poll(at=20),
        lambda s: s.create().poll(at=1).poll(at=20),
    ),
    (
        "no-poll-after-terminal",
        "it looks for its job, which no answer had named",
        lambda s: s.lost().poll("failed", at=1).look_up(state="failed", at=2).look_up(state="failed", at=3),
        lambda s: s.create().poll("failed", at=1).look_up(state="failed", at=2).look_up(state="failed", at=3),
    ),
    (
        "no-poll-after-result-deadline",
        "a webhook gave a reason to look the job up once more",
        lambda s: s.create().look_up(at=21).webhook("job.running", at=22).look_up(at=22),
        lambda s: s.create().look_up(at=21).look_up(at=22),
    ),
    (
        "no-poll-after-cancel-deadline",
        "one last look at the deadline",
        lambda s: s.create().told("cancel").cancel().look_up(at=4).look_up(at=6),
        lambda s: s.create().told("cancel").cancel().look_up(at=4).look_up(at=6).look_up(at=7),
    ),
    (
        "backs-off",
        "look-ups that are to find out about a create go by another schedule",
        lambda s: s.lost().look_up(None, at=1).look_up(None, at=1.3).look_up(None, at=1.6),
        lambda s: listed(s, times=9),
    ),
    (
        "credential-in-its-header-alone",
        "the header is between the client and the provider, and not one that is handed on",
        lambda s: s.create().poll(at=1, exposed=("header x-api-key",)),
        lambda s: s.create().poll(at=1, exposed=("header baggage",)),
    ),
    (
        "credential-in-its-header-alone",
        "at another origin even a header of its own is too much",
        lambda s: s.create().elsewhere(credential=None),
        lambda s: s.create().elsewhere(credential=None, exposed=("header x-api-key",)),
    ),
    (
        "finished-result-not-lost",
        "a look-up had the result inside, and the client left it to a status read, which never came through",
        lambda s: (
            s.under(result={"kind": "inline"})
            .lost()
            .moved("succeeded")
            .look_up(state="succeeded", at=1)
            .claimed("result_timed_out", at=20)
        ),
        lambda s: (
            s.under(result={"kind": "inline"})
            .create()
            .moved("succeeded")
            .poll("succeeded", at=1)
            .claimed("result_timed_out", at=20)
        ),
    ),
]


def findings(told: Told, rule: str) -> list[str]:
    story = Story()
    told(story)
    judgement = story.judgement()
    assert judgement.crashed == ()
    return [finding.message for finding in judgement.findings if finding.rule == rule]


@pytest.mark.parametrize(
    ("rule", "excused", "breach"),
    [pytest.param(rule, excused, breach, id=f"{rule}: {why}") for rule, why, excused, breach in EXCUSED],
)
def test_it_is_excused_and_the_nearest_breach_is_not(rule: str, excused: Told, breach: Told) -> None:
    assert findings(excused, rule) == []
    assert findings(breach, rule) != []
