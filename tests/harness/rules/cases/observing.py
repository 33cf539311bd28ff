"""W4: cases for the rules on observing, on its schedule and on webhooks."""

from tests.harness.rules.cases.case import Case
from tests.harness.rules.histories import OTHER_TRACE, Story


def polled_each(gap_s: float, story: Story, times: int) -> Story:
    """Polled so many times from the first second on, always with the same gap."""
    for number in range(times):
        story.poll(at=1 + number * gap_s)
    return story


def side_by_side(story: Story, *, offset_s: float, drawn_s: float = 0.0) -> Story:
    """Two jobs polled eight times each, every two seconds; the second job's reads come that much after the first's."""
    story.create().create(op="op-2", job="job-2", trace=OTHER_TRACE)
    for number in range(8):
        at = 1 + 2.0 * number
        story.poll(at=at + drawn_s * (number % 3))
        story.poll(op="op-2", job="job-2", trace=OTHER_TRACE, at=at + offset_s)
    return story


def heeding(story: Story) -> Story:
    """A webhook leads to a read that was not due; then the event of the job's end is taken."""
    story.under(status={"retry_after_s": 12}).create(retry_after=12)
    story.webhook("job.running", event="evt-0", at=1).poll(retry_after=12)
    return story.webhook(at=4)


CASES = [
    Case(
        "obeys-retry-after",
        nothing=lambda s: s.create().poll(at=1),
        holds=lambda s: s.create(retry_after=1).poll(at=2),
        just_holds=lambda s: s.create(retry_after=1).poll(at=1),
        breaks=lambda s: s.create(retry_after=1).poll(at=0.9),
    ),
    Case(
        "backs-off",
        nothing=lambda s: s.create().poll(at=0),
        holds=lambda s: s.create().poll(at=1).poll(at=1.5).poll(at=2.5).poll(at=4.5),
        # Full jitter may draw seven waits like these, and hardly ever an eighth.
        just_holds=lambda s: polled_each(0.5, s.create(), 8),
        breaks=lambda s: polled_each(0.5, s.create(), 9),
    ),
    Case(
        "waits-are-jittered",
        nothing=lambda s: s.create().poll(at=1).poll(at=2).ended(at=3),
        holds=lambda s: side_by_side(s, offset_s=0.37, drawn_s=0.1).ended(at=20),
        # Whatever is drawn, a timer that ticks twice a second lets nothing be seen of it.
        just_holds=lambda s: side_by_side(s, offset_s=0.5).ended(at=20),
        breaks=lambda s: side_by_side(s, offset_s=0.37).ended(at=20),
    ),
    Case(
        "restart-continues-schedule",
        nothing=lambda s: s.create(retry_after=1).killed().started(at=0.2).poll(at=0.3),
        holds=lambda s: s.create(retry_after=3).killed(at=1).started(at=2).poll(at=3),
        just_holds=lambda s: s.create(retry_after=3).killed(at=1).poll(at=3, by="w2"),
        breaks=lambda s: s.create(retry_after=3).killed(at=1).started(at=2).poll(at=2),
    ),
    Case(
        "one-observer-per-job",
        nothing=lambda s: s.create().poll(at=1).poll(at=2),
        holds=lambda s: s.create().poll(at=1, retry_after=1).poll(at=2, by="w2", retry_after=1).poll(at=3),
        just_holds=lambda s: s.create().poll(at=1, retry_after=1).poll(at=2, by="w2"),
        breaks=lambda s: s.create().poll(at=1, retry_after=1).poll(at=1, by="w2"),
    ),
    Case(
        "stale-worker-does-nothing",
        nothing=lambda s: s.create().poll(at=1),
        holds=lambda s: s.lease("taken", 1).create().poll(at=1),
        just_holds=lambda s: s.lease("taken", 1).create().lease("lost", 1).lease("taken", 2, by="w2").poll(at=1),
        breaks=lambda s: s.lease("taken", 1).create().lease("taken", 2, by="w2", at=3).poll(at=4),
    ),
    Case(
        "lease-taken-over-only-after-expiry",
        nothing=lambda s: s.lease("taken", 1).lease("released", 1, at=1).lease("taken", 2, by="w2"),
        holds=lambda s: s.lease("taken", 1).lease("taken", 2, by="w2", at=3),
        just_holds=lambda s: s.lease("taken", 1).lease("taken", 2, by="w2", at=2),
        breaks=lambda s: s.lease("taken", 1).killed().lease("taken", 2, by="w2", at=1.9),
    ),
    Case(
        "observes-only-under-lease",
        nothing=lambda s: s.create().poll(at=1),
        holds=lambda s: s.lease("taken", 1).create().poll(at=1),
        just_holds=lambda s: s.lease("taken", 1).create().poll(at=2),
        breaks=lambda s: s.lease("taken", 1).create().poll(at=2.1),
    ),
    Case(
        "no-poll-after-terminal",
        nothing=lambda s: s.create().poll(at=1),
        holds=lambda s: s.create().poll("succeeded", at=1),
        just_holds=lambda s: s.create().poll("succeeded", at=1).poll("succeeded", at=2),
        breaks=lambda s: s.create().poll("succeeded", at=1).poll("succeeded", at=2).poll("succeeded", at=3),
    ),
    Case(
        "no-poll-after-result-deadline",
        nothing=lambda s: s.poll(at=40),
        holds=lambda s: s.create().poll(at=19),
        just_holds=lambda s: s.create().poll(at=20).poll(at=21),
        breaks=lambda s: s.create().poll(at=20).poll(at=21).poll(at=22),
    ),
    Case(
        "timed-out-only-after-deadline",
        nothing=lambda s: s.told("submit").claimed("succeeded"),
        holds=lambda s: s.told("submit").claimed("result_timed_out", at=25),
        just_holds=lambda s: s.told("submit").noted("observing", "result_timed_out", at=20),
        breaks=lambda s: s.told("submit").noted("observing", "result_timed_out", at=19),
    ),
    Case(
        "timed-out-only-if-observed",
        nothing=lambda s: s.told("submit").create().poll("succeeded", at=1).claimed("succeeded"),
        holds=lambda s: s.told("submit").create().poll(at=5).claimed("result_timed_out", at=20),
        just_holds=lambda s: s.told("submit").create().poll(at=18, fate="lost").claimed("result_timed_out", at=20),
        breaks=lambda s: s.told("submit").create().claimed("result_timed_out", at=20),
    ),
    Case(
        "result-read-only-after-success",
        nothing=lambda s: s.create().poll(at=1),
        holds=lambda s: s.create().poll("succeeded", at=1).fetch(),
        just_holds=lambda s: s.create().poll("succeeded", at=1, fate="cut").fetch(),
        breaks=lambda s: s.create().poll("running", progress=100, at=1).fetch(status=409),
    ),
    Case(
        "final-read-before-success",
        nothing=lambda s: s.create().poll("succeeded", at=1).fetch(),
        holds=lambda s: s.create().webhook(at=1).poll("succeeded").fetch(),
        just_holds=lambda s: s.create().poll("succeeded", at=1).webhook().fetch(),
        breaks=lambda s: s.create().webhook(at=1).fetch().claimed("succeeded"),
    ),
    Case(
        "forged-webhook-refused",
        nothing=lambda s: s.webhook(),
        holds=lambda s: s.webhook(genuine=False, answered=401),
        just_holds=lambda s: s.webhook(genuine=False, answered=302),
        breaks=lambda s: s.webhook(genuine=False, answered=204),
    ),
    Case(
        "forged-webhook-changes-nothing",
        nothing=lambda s: s.create(retry_after=5).webhook(at=1).poll(),
        holds=lambda s: s.create(retry_after=5).webhook(at=1, genuine=False, answered=401).poll(at=5),
        just_holds=lambda s: s.create(retry_after=1).webhook(at=1, genuine=False, answered=401).poll(at=1.01),
        breaks=lambda s: s.create(retry_after=5).webhook(at=1, genuine=False, answered=401).poll(at=1.01),
    ),
    Case(
        "duplicate-webhook-changes-nothing",
        nothing=lambda s: s.create(retry_after=5).webhook(at=1).poll(),
        holds=lambda s: s.create().webhook(at=1).poll(retry_after=5).webhook(at=2).poll(at=6),
        just_holds=lambda s: s.create().webhook(at=1).poll(retry_after=1).webhook(at=2).poll(at=2),
        breaks=lambda s: s.create().webhook(at=1).poll(retry_after=5).webhook(at=2).poll(at=2),
    ),
    Case(
        "webhook-out-of-time-refused",
        nothing=lambda s: s.webhook(),
        holds=lambda s: s.webhook(answered=400, skew=-360),
        just_holds=lambda s: s.webhook(answered=400, skew=360).webhook(at=1, skew=300).webhook(at=2, skew=-360),
        breaks=lambda s: s.webhook(skew=360),
    ),
    Case(
        "genuine-webhook-not-refused",
        nothing=lambda s: s.webhook(answered=401).create().webhook(event="evt-2", genuine=False, answered=401),
        holds=lambda s: s.create().webhook(at=1),
        just_holds=lambda s: s.create().webhook(at=1, answered=400, skew=-300).webhook(at=2, answered=503),
        breaks=lambda s: s.create().webhook(at=1, answered=401),
    ),
    Case(
        "final-event-leads-to-a-read",
        nothing=lambda s: s.create(retry_after=12).webhook(at=1).poll("succeeded", at=12),
        holds=lambda s: heeding(s).poll("succeeded"),
        just_holds=lambda s: heeding(s).poll("succeeded", at=10.2),
        breaks=lambda s: heeding(s).poll("succeeded", at=13),
    ),
    Case(
        "duplicate-webhook-answered-2xx",
        nothing=lambda s: s.webhook(answered=None).webhook(answered=500),
        holds=lambda s: s.webhook().webhook(at=1),
        just_holds=lambda s: s.webhook().webhook(at=1, answered=400, skew=-300).webhook(at=2, answered=204, skew=-298),
        breaks=lambda s: s.webhook().webhook(at=1, answered=409),
    ),
    Case(
        "polls-per-job-limited",
        nothing=lambda s: s.create().poll(at=1),
        holds=lambda s: s.create().poll(at=1).poll(at=2).poll(at=4),
        # Each webhook is a reason for one more.
        just_holds=lambda s: s.create().poll(at=1).poll().poll().poll().poll().webhook("job.running").poll(),
        breaks=lambda s: s.create().poll(at=1).poll().poll().poll().poll().poll(),
    ),
    Case(
        "waits-are-capped",
        nothing=lambda s: s.create().poll(at=1, retry_after=30).poll(at=31),
        holds=lambda s: s.create().poll(at=1).poll(at=3),
        # Five caps of two seconds, a lease of two more, and half as long again as one call may take.
        just_holds=lambda s: s.create().poll(at=1).poll(at=14.5),
        breaks=lambda s: s.create().poll(at=1).poll(at=14.6),
    ),
]
