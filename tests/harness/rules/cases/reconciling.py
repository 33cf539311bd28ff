"""W3: cases for the rules on reconciling."""

from tests.harness.rules.cases.case import Case

NOTHING_OFFERED = {"idempotency": {"mechanism": "none"}, "lookup": {"by": "none", "authoritative": False}}

CASES = [
    Case(
        "intent-before-outside-call",
        nothing=lambda s: s.create().poll(at=1),
        holds=lambda s: s.noted(None, "create_pending").create().noted("create_pending", "accepted").poll(at=1),
        # Following a redirect is the same call, going on.
        just_holds=lambda s: s.noted(None, "create_pending").create(status=307, job=None).create(),
        breaks=lambda s: s.noted(None, "create_pending").lost().create(at=1),
    ),
    Case(
        "reconciles-by-offered-path",
        nothing=lambda s: s.create(),
        holds=lambda s: s.lost().look_up(at=1),
        just_holds=lambda s: s.lost().look_up(None, status=404, problem="not_found", at=1),
        breaks=lambda s: s.lost().look_up(None, status=404, problem="not_offered", at=1),
    ),
    Case(
        "human-decision-when-no-mechanism",
        nothing=lambda s: s.lost().claimed("failed"),
        holds=lambda s: s.under(**NOTHING_OFFERED).lost().claimed("human_decision_required", why="nobody knows"),
        just_holds=lambda s: (
            s.under(**NOTHING_OFFERED)
            .create(status=503, job=None)
            .claimed("human_decision_required", why="nobody knows")
        ),
        breaks=lambda s: s.under(**NOTHING_OFFERED).lost().claimed("failed"),
    ),
    Case(
        "human-decision-only-if-stuck",
        nothing=lambda s: s.told("submit").lost().create().claimed("succeeded", at=1),
        holds=lambda s: (
            s.told("submit").lost().lost(at=2).claimed("human_decision_required", why="nobody knows", at=10)
        ),
        # Before the next try the deadline will have passed.
        just_holds=lambda s: (
            s.told("submit").lost().lost(at=2).noted("reconciliation", "human_decision_required", at=6.8)
        ),
        breaks=lambda s: s.told("submit").lost().claimed("human_decision_required", why="nobody knows", at=1),
    ),
    Case(
        "human-decision-is-explained",
        nothing=lambda s: s.claimed("succeeded"),
        holds=lambda s: s.claimed("human_decision_required", why="two job ids for one token"),
        just_holds=lambda s: s.claimed("human_decision_required", why="?"),
        breaks=lambda s: s.claimed("human_decision_required", why=" "),
    ),
    Case(
        "conflicting-job-ids-stop-everything",
        nothing=lambda s: s.create().poll(at=1),
        holds=lambda s: s.create().create(at=1, job="job-2").ended(at=9),
        just_holds=lambda s: s.create().create(at=1, job="job-2").told("reconcile", at=2).poll(at=3),
        breaks=lambda s: s.create().create(at=1, job="job-2").poll(at=3),
    ),
    Case(
        "conflicting-job-ids-need-a-human",
        nothing=lambda s: s.create().claimed("succeeded"),
        holds=lambda s: s.create().create(at=1, job="job-2").claimed("human_decision_required", why="two ids"),
        just_holds=lambda s: (
            s.create()
            .create(at=1, job="job-2")
            .claimed("human_decision_required", why="two ids", job=None)
            .claimed("human_decision_required", why="two ids", by="w2")
        ),
        breaks=lambda s: s.create().create(at=1, job="job-2").claimed("succeeded"),
    ),
    Case(
        "remote-job-never-overwritten",
        nothing=lambda s: s.noted("create_pending", "accepted", job="job-1"),
        holds=lambda s: s.noted("create_pending", "accepted", job="job-1").noted("accepted", "observing", job="job-1"),
        just_holds=lambda s: s.noted("create_pending", "accepted", job="job-1").noted(
            "accepted", "human_decision_required", job="job-2"
        ),
        breaks=lambda s: s.noted("create_pending", "accepted", job="job-1").noted("accepted", "accepted", job="job-2"),
    ),
    Case(
        "absence-needs-authority",
        nothing=lambda s: s.lost().noted("reconciliation", "create_unknown"),
        holds=lambda s: s.lost(job=None).look_up(None).noted("reconciliation", "create_pending"),
        # A stale replica answered: the contract calls it authoritative all the same, and the client cannot know.
        just_holds=lambda s: s.lost().look_up(None, faults=("stale_read",)).noted("reconciliation", "create_pending"),
        breaks=lambda s: (
            s.under(lookup={"authoritative": False}).lost().look_up(None).noted("reconciliation", "create_pending")
        ),
    ),
]
