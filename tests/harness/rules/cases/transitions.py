"""W5: cases for the rules on local states and their evidence."""

from fake_provider.facts import Endpoint
from tests.harness.rules.cases.case import Case

CASES = [
    Case(
        "legal-transitions-only",
        nothing=lambda s: s.create(),
        holds=lambda s: s.noted(None, "create_pending").noted("create_pending", "accepted"),
        just_holds=lambda s: s.noted("human_decision_required", "observing").noted("observing", "observing"),
        breaks=lambda s: s.noted("accepted", "succeeded"),
    ),
    Case(
        "history-continuous",
        nothing=lambda s: s.create(),
        holds=lambda s: s.noted(None, "create_pending").noted("create_pending", "accepted"),
        # A process killed after its durable write may not have come to note it.
        just_holds=lambda s: (
            s.real()
            .noted(None, "create_pending")
            .noted("create_pending", "create_pending")
            .killed(at=1)
            .noted("create_unknown", "reconciliation", at=2)
        ),
        breaks=lambda s: s.noted(None, "create_pending").noted("accepted", "observing"),
    ),
    Case(
        "entries-say-who-and-why",
        nothing=lambda s: s.create(),
        holds=lambda s: s.noted(None, "create_pending"),
        just_holds=lambda s: s.noted(None, "create_pending", reason="-"),
        breaks=lambda s: s.noted(None, "create_pending", reason=""),
    ),
    Case(
        "entries-name-the-job",
        nothing=lambda s: s.noted("create_pending", "accepted", job="job-1"),
        holds=lambda s: s.noted("create_pending", "accepted", job="job-1").noted("accepted", "observing", job="job-1"),
        just_holds=lambda s: (
            s.noted("create_pending", "accepted", job="job-1")
            .noted("accepted", "accepted")
            .noted("accepted", "observing", job="job-1")
        ),
        breaks=lambda s: s.noted("create_pending", "accepted", job="job-1").noted("accepted", "observing"),
    ),
    Case(
        "rest-left-only-on-command",
        nothing=lambda s: s.noted("observing", "result_timed_out").noted("result_timed_out", "result_collecting"),
        holds=lambda s: (
            s.noted("observing", "human_decision_required")
            .told("reconcile", at=1)
            .noted("human_decision_required", "observing")
        ),
        just_holds=lambda s: (
            s.noted("observing", "human_decision_required")
            .told("cancel", at=1)
            .noted("human_decision_required", "cancel_requested")
        ),
        breaks=lambda s: (
            s.told("reconcile")
            .noted("observing", "human_decision_required", at=1)
            .noted("human_decision_required", "observing", at=2)
        ),
    ),
    Case(
        "no-call-at-rest",
        nothing=lambda s: s.create().noted("accepted", "observing").poll(at=1),
        holds=lambda s: s.create().poll("failed", at=1).noted("observing", "failed"),
        just_holds=lambda s: s.create().noted("observing", "result_timed_out").told("reconcile", at=30).poll(at=31),
        breaks=lambda s: s.create().noted("observing", "result_timed_out").poll(at=31),
    ),
    Case(
        "claims-match-history",
        nothing=lambda s: s.claimed("succeeded"),
        holds=lambda s: s.noted("result_collecting", "succeeded").claimed("succeeded"),
        just_holds=lambda s: (
            s.noted("result_collecting", "succeeded").claimed("succeeded").claimed("observing", by="w2")
        ),
        breaks=lambda s: s.noted("observing", "observing").claimed("succeeded"),
    ),
    Case(
        "succeeded-only-if-remote-succeeded",
        nothing=lambda s: s.create().claimed("observing"),
        holds=lambda s: s.create().poll("succeeded", at=1).claimed("succeeded"),
        # An answer that showed it was untrue; the client could not know.
        just_holds=lambda s: s.create().poll("succeeded", at=1, from_fault=True).claimed("succeeded"),
        breaks=lambda s: s.create().poll("running", progress=100, at=1).noted("observing", "result_collecting"),
    ),
    Case(
        "failed-only-if-remote-failed",
        nothing=lambda s: s.create().claimed("succeeded"),
        holds=lambda s: s.create().poll("failed", at=1).claimed("failed"),
        just_holds=lambda s: s.create().poll(status=404, at=2.1).claimed("failed"),
        breaks=lambda s: s.create().poll(status=502, at=1).claimed("failed"),
    ),
    Case(
        "cancelled-only-if-confirmed",
        nothing=lambda s: s.create().claimed("succeeded"),
        holds=lambda s: s.create().cancel().poll("cancelled", at=1).claimed("cancelled"),
        just_holds=lambda s: s.create().cancel(status=200, state="cancelled").claimed("cancelled"),
        # Cancelled in truth, but nobody had told the client.
        breaks=lambda s: s.create().cancel().moved("cancelled").noted("cancel_requested", "cancelled"),
    ),
    Case(
        "withdrawn-only-if-never-sent",
        nothing=lambda s: s.create().claimed("cancelled"),
        holds=lambda s: s.told("cancel").claimed("withdrawn", job=None),
        just_holds=lambda s: s.noted(None, "create_pending").noted("create_pending", "withdrawn"),
        breaks=lambda s: s.create(fate="reset", job=None).claimed("withdrawn", job=None),
    ),
    Case(
        "end-that-was-read-is-claimed",
        nothing=lambda s: s.succeeds().claimed("result_timed_out"),
        holds=lambda s: s.create().poll("failed", at=1).claimed("failed"),
        # Whoever was stopped over the read may have come back too late to act on it.
        just_holds=lambda s: (
            s.create()
            .poll("failed", at=1)
            .claimed("failed", by="w2")
            .call(Endpoint.STATUS, job="job-1", fate=None)
            .stopped(at=2)
            .resumed(at=5)
            .claimed("human_decision_required", why="?")
        ),
        breaks=lambda s: s.create().poll("cancelled", at=1).claimed("result_timed_out", at=20),
    ),
    Case(
        "claimed-rest-is-kept",
        nothing=lambda s: s.create().claimed("result_timed_out", at=20).poll(at=21),
        holds=lambda s: s.create().claimed("human_decision_required", why="?").told("decide", at=1).poll(at=1),
        # Another worker may have been on its way.
        just_holds=lambda s: s.create().claimed("succeeded", by="w2", at=1).poll(at=2),
        breaks=lambda s: s.create().claimed("result_unavailable", at=1).fetch(at=2),
    ),
    Case(
        "decision-acted-upon",
        nothing=lambda s: s.lost().claimed("human_decision_required", why="?").ended(at=30),
        holds=lambda s: (
            s.lost().told("decide", decided="observing", at=1).poll(at=2).claimed("succeeded", at=3).ended(at=30)
        ),
        # Of a create that nobody can find out about, nothing more is found out.
        just_holds=lambda s: (
            s.lost()
            .told("decide", decided="create_unknown", at=1)
            .claimed("human_decision_required", why="?", at=3)
            .ended(at=30)
        ),
        breaks=lambda s: (
            s.lost()
            .told("decide", decided="observing", at=1)
            .claimed("human_decision_required", why="?", at=3)
            .ended(at=30)
        ),
    ),
    Case(
        "reconcile-command-acted-upon",
        nothing=lambda s: s.create().poll(at=1).claimed("result_timed_out", at=25).ended(at=60),
        holds=lambda s: (
            s.create()
            .poll(at=1)
            .told("reconcile", at=30)
            .poll("succeeded", at=31)
            .claimed("result_unavailable", at=32)
            .ended(at=60)
        ),
        # It came so near to the deadline that the job may have been observed still.
        just_holds=lambda s: (
            s.create()
            .poll(at=19)
            .told("reconcile", at=19.5)
            .poll(at=20)
            .claimed("result_timed_out", at=25)
            .ended(at=60)
        ),
        breaks=lambda s: (
            s.create().poll(at=19).told("reconcile", at=23.3).claimed("result_timed_out", at=25).ended(at=60)
        ),
    ),
]
