"""W6: cases for the rules on cancelling."""

from tests.harness.rules.cases.case import Case
from tests.harness.rules.histories import Story


def fails_to_cancel(story: Story, times: int) -> Story:
    """As many cancel calls at one moment, each answered with an error."""
    for _ in range(times):
        story.cancel(status=503, state=None)
    return story


NO_KEYS = {"mechanism": "none"}

CASES = [
    Case(
        "cancel-intent-recorded-first",
        nothing=lambda s: s.create().cancel(),
        holds=lambda s: s.create().noted("observing", "cancel_requested").cancel(),
        just_holds=lambda s: s.real().create().cancel().noted("observing", "cancel_requested", at=0.2),
        breaks=lambda s: s.create().noted("accepted", "observing").cancel(),
    ),
    Case(
        "cancel-only-when-commanded",
        nothing=lambda s: s.create().poll(at=1),
        holds=lambda s: s.create().told("cancel").cancel(),
        just_holds=lambda s: s.told("submit").create().told("submit", changed=True).cancel(),
        breaks=lambda s: s.create().cancel(at=20),
    ),
    Case(
        "cancel-only-where-offered",
        nothing=lambda s: s.under(cancel={"effect": "unsupported"}).create(),
        holds=lambda s: s.create().told("cancel").cancel(),
        just_holds=lambda s: s.under(cancel={"effect": "best_effort"}).create().told("cancel").cancel(),
        breaks=lambda s: s.under(cancel={"effect": "unsupported"}).create().told("cancel").cancel(status=405),
    ),
    Case(
        "cancel-names-recorded-job",
        nothing=lambda s: s.create().cancel(),
        holds=lambda s: s.create().noted("create_pending", "accepted", job="job-1").cancel(),
        just_holds=lambda s: s.real().create().cancel().noted("create_pending", "accepted", job="job-1", at=0.2),
        breaks=lambda s: s.create().noted("create_pending", "accepted", job="job-1").cancel(job="job-2"),
    ),
    Case(
        "one-cancel-per-intent",
        nothing=lambda s: s.create().told("cancel"),
        holds=lambda s: s.create().told("cancel").cancel(),
        just_holds=lambda s: s.create().told("cancel").cancel(fate="lost").cancel(at=1),
        breaks=lambda s: s.create().told("cancel").cancel().cancel(at=1),
    ),
    Case(
        "no-cancel-after-terminal",
        nothing=lambda s: s.create().poll("succeeded", at=1),
        holds=lambda s: s.create().told("cancel").cancel(),
        just_holds=lambda s: s.create().told("cancel", at=1).poll("succeeded", fate="lost").cancel(at=2, status=409),
        breaks=lambda s: s.create().poll("succeeded", at=1).told("cancel", at=2).cancel(status=409),
    ),
    Case(
        "stop-command-acted-upon",
        nothing=lambda s: s.told("cancel").lost().ended(at=60),
        holds=lambda s: s.told("cancel").create().cancel(at=1).ended(at=60),
        # It ended by itself before the client had to act; that, too, was judged: there was another one to stop.
        just_holds=lambda s: (
            s.told("cancel")
            .create()
            .moved("succeeded", at=1)
            .told("cancel", "op-2")
            .create(op="op-2", job="job-2", token="x")
            .cancel(op="op-2", job="job-2", at=5)
            .ended(at=60)
        ),
        breaks=lambda s: s.told("cancel").create().poll(at=1).moved("succeeded", at=30).ended(at=60),
    ),
    Case(
        "observation-continues-after-cancel",
        nothing=lambda s: s.create().cancel(status=200, state="cancelled").ended(at=60),
        holds=lambda s: s.create().cancel().poll("cancelled", at=1).ended(at=60),
        just_holds=lambda s: s.create().cancel().poll(status=503, at=59).ended(at=60),
        breaks=lambda s: s.create().cancel().ended(at=60),
    ),
    Case(
        "cancel-unconfirmed-only-after-deadline",
        nothing=lambda s: s.told("cancel").claimed("cancelled"),
        holds=lambda s: s.told("cancel").claimed("cancellation_unconfirmed", at=9),
        just_holds=lambda s: s.told("cancel").noted("cancelling", "cancellation_unconfirmed", at=5),
        breaks=lambda s: s.told("cancel").noted("cancelling", "cancellation_unconfirmed", at=4),
    ),
    Case(
        "claims-name-the-job",
        nothing=lambda s: s.claimed("failed", job=None),
        holds=lambda s: s.claimed("cancellation_unconfirmed"),
        just_holds=lambda s: s.claimed("result_timed_out").claimed("human_decision_required", job=None, why="?"),
        breaks=lambda s: s.claimed("cancellation_unconfirmed", job=None),
    ),
    Case(
        "no-poll-after-cancel-deadline",
        nothing=lambda s: s.create().told("cancel", at=1).cancel(status=409).poll(at=30),
        holds=lambda s: s.create().told("cancel", at=1).cancel().poll(at=5),
        just_holds=lambda s: s.create().told("cancel", at=1).cancel().poll(at=5).poll(at=6).poll(at=7),
        breaks=lambda s: s.create().told("cancel", at=1).cancel().poll(at=5).poll(at=7).poll(at=8),
    ),
    Case(
        "cancels-per-intent-limited",
        nothing=lambda s: s.create().told("cancel").cancel(),
        holds=lambda s: s.create().told("cancel").cancel(status=503).cancel(status=503, at=1).cancel(at=2),
        # Another command is another intent.
        just_holds=lambda s: fails_to_cancel(fails_to_cancel(s.create().told("cancel"), 5).told("cancel"), 5),
        breaks=lambda s: fails_to_cancel(s.create().told("cancel"), 6),
    ),
    Case(
        "nothing-begun-after-a-stop",
        nothing=lambda s: s.create().ended(),
        holds=lambda s: s.under(idempotency=NO_KEYS).lost(job=None).told("cancel", at=1).look_up(None, at=9).ended(),
        # The look-up may have been on its way when the command was taken up.
        just_holds=lambda s: (
            s.under(idempotency=NO_KEYS).lost(job=None).told("cancel", at=1).look_up(None, at=8.2).create(at=8.2)
        ),
        breaks=lambda s: (
            s.under(idempotency=NO_KEYS).lost(job=None).told("cancel", at=1).look_up(None, at=8.3).create(at=8.3)
        ),
    ),
]
