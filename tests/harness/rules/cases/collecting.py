"""W7 and W8: cases for the rules on results and records."""

from typing import Any

from tests.harness.rules.cases.case import Case
from tests.harness.rules.histories import SHA, TOKEN, TRACE, Story

ONCE = {"kind": "one_time"}
UNCHECKED = {"checksum": False}


def fails_to_fetch(story: Story, times: int) -> Story:
    """As many result reads at one moment, each answered with an error."""
    for _ in range(times):
        story.fetch(status=503)
    return story


def missed(story: Story, **answer: Any) -> Story:
    """A job succeeds, and a try to fetch its result comes to nothing."""
    return story.told("submit").create().moved("succeeded").poll("succeeded", at=1).fetch(at=2, **answer)


LINKS = {"kind": "signed_url"}

CASES = [
    Case(
        "result-retrieved-before-success",
        nothing=lambda s: s.create(status=200, state="succeeded").claimed("succeeded"),
        holds=lambda s: s.succeeds().claimed("succeeded"),
        just_holds=lambda s: s.create().poll("succeeded", at=1).fetch(fate="cut").claimed("succeeded"),
        breaks=lambda s: s.create().poll("succeeded", at=1).fetch(status=410).claimed("succeeded"),
    ),
    Case(
        "harmed-result-not-taken",
        nothing=lambda s: s.create().moved("succeeded").poll("succeeded").fetch(sha="00").claimed("failed"),
        holds=lambda s: s.succeeds().claimed("succeeded"),
        just_holds=lambda s: (
            s.create().moved("succeeded").poll("succeeded").fetch(sha="00").fetch().claimed("succeeded")
        ),
        breaks=lambda s: s.create().moved("succeeded").poll("succeeded").fetch(sha="00").claimed("succeeded"),
    ),
    Case(
        "result-matches-provider",
        nothing=lambda s: s.succeeds().claimed("succeeded"),
        holds=lambda s: s.succeeds().claimed("succeeded", sha=SHA),
        just_holds=lambda s: s.succeeds().claimed("succeeded", sha=f"sha256:{SHA.upper()}"),
        breaks=lambda s: s.succeeds().claimed("succeeded", sha="00"),
    ),
    Case(
        "failed-items-reported",
        nothing=lambda s: s.succeeds().claimed("succeeded"),
        holds=lambda s: s.create().moved("succeeded", failed=1).fetch().claimed("succeeded", records=3, failed=1),
        just_holds=lambda s: s.create().moved("succeeded", failed=3).fetch().claimed("succeeded", failed=3),
        breaks=lambda s: s.create().moved("succeeded", failed=1).fetch().claimed("succeeded", records=3),
    ),
    Case(
        "counts-add-up",
        nothing=lambda s: s.succeeds().claimed("succeeded"),
        holds=lambda s: s.succeeds().claimed("succeeded", records=3, failed=0),
        just_holds=lambda s: s.create().moved("succeeded", failed=3).fetch().claimed("succeeded", records=3, failed=3),
        breaks=lambda s: s.succeeds().claimed("succeeded", records=2),
    ),
    Case(
        "one-time-result-read-once",
        nothing=lambda s: s.succeeds().fetch(at=2),
        holds=lambda s: s.under(result=ONCE).succeeds(),
        # Killed with the only copy in hand: to ask again is all that is left.
        just_holds=lambda s: s.under(result=ONCE).succeeds().killed().fetch(status=410, by="w2", at=4),
        breaks=lambda s: s.under(result=ONCE).succeeds().fetch(status=410, at=4),
    ),
    Case(
        "finished-result-not-lost",
        nothing=lambda s: s.create().poll(at=1).claimed("result_timed_out"),
        holds=lambda s: s.succeeds().claimed("succeeded"),
        just_holds=lambda s: (
            s.create().moved("succeeded").poll("succeeded", at=1).fetch(status=410).claimed("result_unavailable")
        ),
        breaks=lambda s: s.succeeds().claimed("result_unavailable"),
    ),
    Case(
        "unavailable-only-after-tries",
        nothing=lambda s: s.told("submit").succeeds().claimed("succeeded"),
        holds=lambda s: missed(s, status=500).fetch(status=500, at=3).claimed("result_unavailable"),
        just_holds=lambda s: missed(s, status=410).claimed("result_unavailable"),
        breaks=lambda s: missed(s, status=500).claimed("result_unavailable"),
    ),
    Case(
        "one-trace-per-operation",
        nothing=lambda s: s.create().create(op="op-2", trace="0" * 31 + "1"),
        holds=lambda s: s.create().poll(at=1),
        just_holds=lambda s: s.create().poll(at=1, trace=None).poll(at=2),
        breaks=lambda s: s.create().poll(at=1, trace="0" * 31 + "1"),
    ),
    Case(
        "trace-on-every-call",
        nothing=lambda s: s.look_up(),
        holds=lambda s: s.create(),
        just_holds=lambda s: s.create().poll(at=1, trace="0" * 31 + "1"),
        breaks=lambda s: s.create().poll(at=1, trace=None),
    ),
    Case(
        "trace-is-not-token",
        nothing=lambda s: s.create(token=None),
        holds=lambda s: s.create(),
        just_holds=lambda s: s.create(token=TOKEN[:16] + TRACE[16:], trace=TRACE),
        breaks=lambda s: s.create(trace=TOKEN),
    ),
    Case(
        "no-secrets-recorded",
        nothing=lambda s: s.create(),
        holds=lambda s: s.noted(None, "create_pending", reason="a basic operation, its bearer unknown"),
        just_holds=lambda s: s.noted(None, "create_pending", reason="Authorization: Bearer [redacted], password=***"),
        breaks=lambda s: s.complained("401 for Authorization: Bearer sk-live-0123456789"),
    ),
    Case(
        "job-id-is-no-authorisation",
        nothing=lambda s: s.fetch(),
        holds=lambda s: s.create(),
        just_holds=lambda s: s.create(credential="sha256:another"),
        breaks=lambda s: s.create().poll(at=1, credential=None),
    ),
    Case(
        "credential-only-to-its-origin",
        nothing=lambda s: s.create(),
        holds=lambda s: s.redirected(),
        just_holds=lambda s: s.redirected().elsewhere(credential=None),
        breaks=lambda s: s.redirected().elsewhere(credential="sha256:0123456789abcdef"),
    ),
    Case(
        "result-reads-limited",
        nothing=lambda s: s.create().poll("succeeded", at=1).fetch(),
        holds=lambda s: s.create().poll("succeeded", at=1).fetch(status=503).fetch(status=503, at=2).fetch(at=3),
        just_holds=lambda s: fails_to_fetch(s.create().poll("succeeded", at=1), 5).fetch(at=1.225),
        breaks=lambda s: fails_to_fetch(s.create().poll("succeeded", at=1), 5).fetch(),
    ),
    Case(
        "expired-link-renewed",
        nothing=lambda s: (
            s.told("submit").create().poll("succeeded", at=1).fetch(status=410).claimed("result_unavailable")
        ),
        holds=lambda s: (
            s.under(result=LINKS)
            .told("submit")
            .create()
            .poll("succeeded", at=1)
            .fetch(status=410, problem="link_expired")
            .poll("succeeded", at=1.5)
            .fetch(status=410, problem="link_expired")
            .claimed("result_unavailable", at=2)
        ),
        # Gone is gone, whatever the link.
        just_holds=lambda s: (
            s.under(result=LINKS)
            .told("submit")
            .create()
            .poll("succeeded", at=1)
            .fetch(status=410, problem="result_gone")
            .claimed("result_unavailable", at=2)
        ),
        breaks=lambda s: (
            s.under(result=LINKS)
            .told("submit")
            .create()
            .poll("succeeded", at=1)
            .fetch(status=410, problem="link_expired")
            .claimed("result_unavailable", at=2)
        ),
    ),
    Case(
        "credential-in-its-header-alone",
        nothing=lambda s: s.claimed("withdrawn", job=None),
        holds=lambda s: s.create().poll(at=1).elsewhere(credential=None),
        # A second header for the same key, between the client and the provider.
        just_holds=lambda s: s.create().poll(at=1, exposed=("header x-api-key",)),
        breaks=lambda s: s.create().poll(at=1, exposed=("query",)),
    ),
]
