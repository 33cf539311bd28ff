"""W5: cases for the rules on local states and their evidence."""

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
]
