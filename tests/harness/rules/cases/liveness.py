"""What must come about in the end: cases for the rules on liveness."""

from tests.harness.rules.cases.case import Case

CASES = [
    Case(
        "reaches-rest-after-faults-stop",
        nothing=lambda s: s.told("submit").create().healed().claimed("observing", at=5).ended(at=5),
        holds=lambda s: s.succeeds().healed().claimed("succeeded", at=5).ended(at=5),
        just_holds=lambda s: (
            s.told("submit").create().healed(at=5).claimed("human_decision_required", why="?", at=5).ended(at=65)
        ),
        breaks=lambda s: s.told("submit").create().healed(at=5).claimed("observing", at=65).ended(at=65),
    ),
    Case(
        "every-operation-is-claimed",
        nothing=lambda s: s.told("submit").claimed("withdrawn", job=None).ended(),
        holds=lambda s: s.create().claimed("observing").ended(),
        just_holds=lambda s: s.create(status=422, job=None).claimed("failed", job=None, by="w2").ended(),
        breaks=lambda s: s.create().create(op="op-2", job="job-2").claimed("succeeded").ended(),
    ),
    Case(
        "no-orphaned-jobs",
        nothing=lambda s: s.create().claimed("observing").ledger("running").ended(),
        holds=lambda s: s.create().claimed("succeeded").ledger("succeeded").ended(),
        just_holds=lambda s: (
            s.lost()
            .create(at=1, job="job-2")
            .claimed("succeeded", job="job-2")
            .ledger("succeeded")
            .ledger("succeeded", job="job-2")
            .ended()
        ),
        breaks=lambda s: s.lost().claimed("failed", job=None).ledger("running").ended(),
    ),
    Case(
        "claims-match-ledger",
        nothing=lambda s: (
            s.create(status=422, job=None).claimed("failed", job=None).ledger("running", op="op-2").ended()
        ),
        holds=lambda s: s.create().claimed("succeeded").ledger("succeeded").ended(),
        just_holds=lambda s: s.create().claimed("succeeded").ledger("succeeded", op=None).ended(),
        breaks=lambda s: s.create().claimed("succeeded", job="job-9").ledger("succeeded").ended(),
    ),
    Case(
        "lease-taken-over",
        nothing=lambda s: s.create().killed(at=1).claimed("observing", by="w2", at=5).ended(at=5),
        holds=lambda s: s.create().killed(at=1).poll(at=4, by="w2").claimed("observing", by="w2", at=5).ended(at=5),
        just_holds=lambda s: s.create().killed().poll(at=60, by="w2").claimed("observing", by="w2", at=60).ended(at=60),
        breaks=lambda s: s.create().killed(at=1).claimed("observing", by="w2", at=60).ended(at=60),
    ),
]
