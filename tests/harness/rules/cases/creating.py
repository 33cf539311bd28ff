"""W1 and W2: cases for the rules on creating and delivery."""

from tests.harness.rules.cases.case import Case
from tests.harness.rules.histories import OTHER_TOKEN

NO_KEYS = {"mechanism": "none"}

CASES = [
    Case(
        "one-job-per-operation",
        nothing=lambda s: s.create(job=None, status=422),
        holds=lambda s: s.create(),
        # The provider forgot a token that it should have known: the re-send was right.
        just_holds=lambda s: s.lost().create(at=1, job="job-2"),
        breaks=lambda s: s.lost().create(at=1, job="job-2", token=OTHER_TOKEN),
    ),
    Case(
        "record-before-request",
        nothing=lambda s: s.create(),
        holds=lambda s: s.noted(None, "create_pending").create(),
        # A second create needs no second record, and in real time a note may come in a moment after the request.
        just_holds=lambda s: s.real().create().noted(None, "create_pending", at=0.2).create(at=1),
        breaks=lambda s: s.create().noted(None, "create_pending"),
    ),
    Case(
        "accepted-only-if-answered",
        nothing=lambda s: s.noted(None, "create_pending").create(),
        holds=lambda s: s.create().noted("create_pending", "accepted", job="job-1"),
        just_holds=lambda s: s.create(fate="cut").noted("create_pending", "accepted", job="job-1"),
        breaks=lambda s: s.lost().noted("create_pending", "accepted", job="job-1"),
    ),
    Case(
        "observing-only-after-accepted",
        nothing=lambda s: s.create().poll(at=1),
        holds=lambda s: s.create().noted("create_pending", "accepted", job="job-1").poll(at=1),
        just_holds=lambda s: s.real().create().poll(at=1).noted("create_pending", "accepted", job="job-1", at=1.2),
        breaks=lambda s: s.noted(None, "create_pending").create().poll(at=1),
    ),
    Case(
        "synchronous-success-is-no-acceptance",
        nothing=lambda s: s.lost().look_up().noted("reconciliation", "accepted", job="job-1"),
        holds=lambda s: s.create(status=200, state="succeeded").noted("create_pending", "result_collecting"),
        # A replay that shows the job at its end is a job that was accepted once.
        just_holds=lambda s: s.create(status=200, state="succeeded", replayed=True).noted("create_pending", "accepted"),
        breaks=lambda s: s.create(status=200, state="succeeded").noted("create_pending", "accepted"),
    ),
    Case(
        "changed-request-is-new-operation",
        nothing=lambda s: s.told("submit").create(),
        holds=lambda s: s.told("submit").told("submit", changed=True).refused("submit").create(),
        just_holds=lambda s: s.told("submit").lost().told("submit", changed=True).create(at=1),
        breaks=lambda s: s.told("submit").lost().told("submit", changed=True).create(at=1, body="sha256:bb"),
    ),
    Case(
        "changed-submit-refused",
        nothing=lambda s: s.told("submit").told("submit"),
        holds=lambda s: s.told("submit").told("submit", changed=True).refused("submit"),
        just_holds=lambda s: s.told("submit").told("submit", changed=True).refused("submit").killed(),
        breaks=lambda s: s.told("submit").told("submit", changed=True).ended(at=5),
    ),
    Case(
        "one-request-per-token",
        nothing=lambda s: s.create(token=None),
        holds=lambda s: s.create().create(op="op-2", token=OTHER_TOKEN, job="job-2"),
        just_holds=lambda s: s.lost().create(at=1),
        breaks=lambda s: s.create().create(op="op-2", job="job-2"),
    ),
    Case(
        "token-where-contract-says",
        nothing=lambda s: s.under(idempotency=NO_KEYS).create(token=None),
        holds=lambda s: s.create(),
        just_holds=lambda s: s.under(idempotency={"mechanism": "body_field"}).create(),
        breaks=lambda s: s.create(token=None),
    ),
    Case(
        "token-has-128-bits",
        nothing=lambda s: s.create(token=None),
        holds=lambda s: s.create(),
        just_holds=lambda s: s.create(token="6ba7b810-9dad-11d1-80b4-00c04fd430c8"),
        breaks=lambda s: s.create(token="op-1-1764445191"),
    ),
    Case(
        "same-token-on-retry",
        nothing=lambda s: s.create(),
        holds=lambda s: s.lost().create(at=1),
        # An authoritative look-up proved that there is no job: the operation was resolved.
        just_holds=lambda s: s.lost(job=None).look_up(None, at=1).create(at=2, token=OTHER_TOKEN),
        breaks=lambda s: s.lost(job=None).create(at=1, token=OTHER_TOKEN),
    ),
    Case(
        "same-request-on-retry",
        nothing=lambda s: s.create(),
        holds=lambda s: s.lost().create(at=1),
        # With the token in the body another token makes another body: that is same-token-on-retry's finding.
        just_holds=lambda s: (
            s.under(idempotency={"mechanism": "body_field"})
            .lost()
            .lost(at=1)
            .create(at=2, token=OTHER_TOKEN, body="sha256:bb")
        ),
        breaks=lambda s: s.lost().create(at=1, body="sha256:bb"),
    ),
    Case(
        "no-blind-resend",
        nothing=lambda s: s.under(idempotency=NO_KEYS).lost(),
        holds=lambda s: s.under(idempotency=NO_KEYS).create(status=429, job=None).create(at=1),
        just_holds=lambda s: s.under(idempotency=NO_KEYS).lost().told("decide", at=1).create(at=2),
        breaks=lambda s: s.under(idempotency=NO_KEYS).lost(token=None).create(at=1, token=None),
    ),
    Case(
        "no-resend-after-key-lifetime",
        nothing=lambda s: s.under(idempotency={"key_lifetime_s": 3}).create(),
        holds=lambda s: s.under(idempotency={"key_lifetime_s": 3}).lost().create(at=1),
        just_holds=lambda s: s.under(idempotency={"key_lifetime_s": 3}).lost().create(at=3),
        breaks=lambda s: s.under(idempotency={"key_lifetime_s": 3}).lost().create(at=3.1),
    ),
    Case(
        "no-create-after-deadline",
        nothing=lambda s: s.create(at=30),
        holds=lambda s: s.lost().create(at=1),
        just_holds=lambda s: s.lost().create(at=10),
        breaks=lambda s: s.lost().create(at=10.1),
    ),
    Case(
        "no-create-once-accepted",
        nothing=lambda s: s.create(),
        holds=lambda s: s.lost().create(at=1),
        # Killed with the answer in hand: it may not have been read.
        just_holds=lambda s: s.create().killed().started(at=1).create(at=1),
        breaks=lambda s: s.create().killed(at=1).started(at=2).create(at=2),
    ),
    Case(
        "no-create-after-rejection",
        nothing=lambda s: s.create(status=422, job=None),
        holds=lambda s: s.create(status=409, job=None).create(at=1),
        just_holds=lambda s: s.create(status=422, job=None, fate="lost").create(at=1),
        breaks=lambda s: s.create(status=422, job=None).create(at=1),
    ),
    Case(
        "careless-replay-noticed",
        nothing=lambda s: s.create().create(op="op-2", job="job-2", token=OTHER_TOKEN).claimed("succeeded"),
        # It stops where the answer is about somebody else's job.
        holds=lambda s: s.create().create(op="op-2").claimed("human_decision_required", op="op-2", why="not ours"),
        just_holds=lambda s: (
            s.create().create(op="op-2").claimed("human_decision_required", op="op-2", job=None, why="?")
        ),
        breaks=lambda s: s.create().create(op="op-2").noted("create_pending", "accepted", op="op-2", job="job-1"),
    ),
    Case(
        "tries-per-create-limited",
        nothing=lambda s: s.create(),
        holds=lambda s: s.lost().lost(at=1).lost(at=2).create(at=3),
        just_holds=lambda s: s.lost().lost().lost().lost().lost().create(at=0.225),
        breaks=lambda s: s.lost().lost().lost().lost().lost().create(),
    ),
    Case(
        "job-is-what-was-asked-for",
        nothing=lambda s: s.told("submit", asked="sha256:aa").create(),
        holds=lambda s: s.told("submit", asked="sha256:aa").create(asked="sha256:aa"),
        # What was submitted under its id since then is another rule's business.
        just_holds=lambda s: (
            s.told("submit", asked="sha256:aa")
            .lost(asked="sha256:aa")
            .told("submit", changed=True, asked="sha256:bb")
            .create(at=1, asked="sha256:bb")
        ),
        breaks=lambda s: s.told("submit", asked="sha256:aa").create(asked="sha256:bb"),
    ),
]
