"""W8: trace ids join actions, records state facts, and credentials stay where they belong."""

import re
from collections.abc import Iterator
from typing import Final

from fake_provider.facts import Endpoint
from harness.history import Claimed, Entry, SecretSaid, StateRecorded, SubjectComplained
from harness.rules.registry import Needs, Rule, rule
from harness.rules.views import Exchange
from harness.rules.words import at, sent
from harness.rules.world import World
from harness.verdict import Finding

__all__: list[str] = []


@rule(id="one-trace-per-operation", requirement="W8.1", needs=Needs.WIRE)
class OneTracePerOperation(Rule):
    """All calls for an operation carry the same trace id, and no other operation's calls do.

    A trace minted anew for each poll joins nothing, and one for all operations joins everything.
    """

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._traces: dict[str, Exchange] = {}
        self._owners: dict[str, Exchange] = {}

    def on_request(self, exchange: Exchange) -> Iterator[Finding]:
        name, trace = exchange.operation, exchange.request.trace
        if name is None or trace is None:
            return
        owner = self._owners.setdefault(trace, exchange)
        if owner.operation != name and exchange.request.endpoint is Endpoint.CREATE and self.first_time(trace):
            self.judged += 1
            yield self.finding(
                f"{sent(exchange)} for {name} carries trace {trace}, which is that of {owner.operation} since "
                f"{sent(owner)}. Mint a trace id for each operation.",
                owner.sent,
                exchange.sent,
            )
        first = self._traces.setdefault(name, exchange)
        if first is exchange:
            return
        self.judged += 1
        if trace != first.request.trace and self.first_time(name):
            yield self.finding(
                f"{sent(exchange)} for {name} carries trace {trace}; {sent(first)} carried {first.request.trace}. "
                "Mint one trace id with the operation, and send it with every call.",
                first.sent,
                exchange.sent,
            )


@rule(id="trace-on-every-call", requirement="W8.1", needs=Needs.WIRE)
class TraceOnEveryCall(Rule):
    """Every create, status read, cancel and result read carries a trace id (W3C ``traceparent``)."""

    endpoints = frozenset({Endpoint.CREATE, Endpoint.STATUS, Endpoint.CANCEL, Endpoint.RESULT})

    def on_request(self, exchange: Exchange) -> Iterator[Finding]:
        request = exchange.request
        if exchange.operation is None:
            return
        self.judged += 1
        if request.trace is None and self.first_time(exchange.operation):
            yield self.finding(
                f"{sent(exchange)} for {exchange.operation} carries no valid traceparent. Send the operation's trace "
                "id with every call.",
                exchange.sent,
            )


@rule(id="trace-is-not-token", requirement="W8.1", needs=Needs.WIRE)
class TraceIsNotToken(Rule):
    """The trace id is never the idempotency token, nor a part of it.

    Traces go to logs and to third parties; who knows the token can have the create answered as his own.
    """

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._tokens: dict[str, str] = {}

    def on_request(self, exchange: Exchange) -> Iterator[Finding]:
        request = exchange.request
        if exchange.operation is None:
            return
        if request.token is not None:
            self._tokens[exchange.operation] = request.token.replace("-", "").lower()
        token = self._tokens.get(exchange.operation)
        if token is None or request.trace is None:
            return
        self.judged += 1
        if (request.trace in token or token in request.trace) and self.first_time(exchange.operation):
            yield self.finding(
                f"{sent(exchange)} for {exchange.operation} carries trace {request.trace}, which is its idempotency "
                "token. "
                "Draw the two apart from each other.",
                exchange.sent,
            )


SECRETS: Final = (
    ("a bearer token", re.compile(r"\bbearer\s+(?!\W*(?:redacted|\*|…|<|\[))[A-Za-z0-9._~+/-]{8,}", re.IGNORECASE)),
    ("basic credentials", re.compile(r"\bbasic\s+[A-Za-z0-9+/]{12,}={0,2}(?![A-Za-z0-9])", re.IGNORECASE)),
    ("a webhook secret", re.compile(r"\bwhsec_[A-Za-z0-9+/=]{8,}")),
    ("a private key", re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----")),
    ("a password", re.compile(r"\bpass(?:word|wd)\s*[=:]\s*(?!\W*(?:redacted|\*|…|<|\[))\S{4,}", re.IGNORECASE)),
)
LOOKS_SECRET: Final = re.compile(r"bearer|basic|whsec_|private key|passw", re.IGNORECASE)
"""What every pattern above needs: most texts have none of it, and are done with at once."""


@rule(id="no-secrets-recorded", requirement="W8.3", needs=Needs.REPORT)
class NoSecretsRecorded(Rule):
    """Nothing that the client records, claims or complains of holds a credential.

    The harness knows the secrets that it gave to the client, and finds them wherever they are said; other people's
    are found by their form (a bearer token, a password, a private key …). The finding does not repeat the secret.
    """

    def on_secret(self, entry: Entry, fact: SecretSaid) -> Iterator[Finding]:
        if self.first_time(fact.worker, fact.where):
            yield self.finding(
                f"{fact.worker} put a secret that it was given, its credential or a webhook secret, into a "
                f"{fact.where} {at(entry)}. {self.advice}",
                entry,
            )

    advice = "Attach credentials at the transport, and redact what is recorded."

    def on_recorded(self, entry: Entry, fact: StateRecorded) -> Iterator[Finding]:
        text = f"{fact.actor} {fact.cause} {fact.reason}"
        return self._judge(entry, f"{fact.worker}'s history entry for {fact.operation}", text)

    def on_claimed(self, entry: Entry, fact: Claimed) -> Iterator[Finding]:
        return self._judge(entry, f"{fact.worker}'s claim about {fact.operation}", fact.explanation or "")

    def on_complaint(self, entry: Entry, fact: SubjectComplained) -> Iterator[Finding]:
        return self._judge(entry, f"an error of {fact.worker}", fact.message)

    def _judge(self, entry: Entry, where: str, text: str) -> Iterator[Finding]:
        self.judged += 1
        if LOOKS_SECRET.search(text) is None:
            return
        for name, pattern in SECRETS:
            if pattern.search(text) and self.first_time(where, name):
                yield self.finding(f"{where} {at(entry)} holds {name}. {self.advice}", entry)


@rule(id="job-id-is-no-authorisation", requirement="W8.1", needs=Needs.WIRE)
class JobIdIsNoAuthorisation(Rule):
    """Every call but a result's carries the credential; a job id is no proof of authorisation.

    (A signed link to a result brings its own.)
    """

    endpoints = frozenset({Endpoint.CREATE, Endpoint.STATUS, Endpoint.CANCEL, Endpoint.LOOKUP})
    strays = True

    def on_request(self, exchange: Exchange) -> Iterator[Finding]:
        if exchange.request.origin is not None:
            return  # there it must not be sent: credential-only-to-its-origin
        self.judged += 1
        if exchange.request.credential is None and self.first_time(exchange.request.endpoint):
            yield self.finding(
                f"{sent(exchange)} for {exchange.operation} carries no credential. Attach it to every call to "
                "the provider.",
                exchange.sent,
            )


@rule(id="credential-only-to-its-origin", requirement="W8.3", needs=Needs.WIRE)
class CredentialOnlyToItsOrigin(Rule):
    """The credential goes to the origin that it is for, and to no other.

    A redirect, or a URL that the provider hands over, may lead anywhere. Judged on requests that went elsewhere, and
    on answers that would have led there.
    """

    strays = True

    def on_request(self, exchange: Exchange) -> Iterator[Finding]:
        request = exchange.request
        if request.origin is None:
            return
        self.judged += 1
        if request.credential is not None and self.first_time(request.origin):
            ours = "the provider" if self.world.started is None else self.world.started.origin
            yield self.finding(
                f"{sent(exchange)} went to {request.origin} with the credential that is for {ours}. "
                "Drop the Authorization header wherever a request leaves its origin.",
                exchange.sent,
            )

    def on_answer(self, exchange: Exchange) -> Iterator[Finding]:
        if exchange.redirected:
            self.judged += 1
        return iter(())


HANDED_ON: Final = frozenset(
    {
        "baggage",
        "idempotency-key",
        "referer",
        "traceparent",
        "tracestate",
        "user-agent",
        "x-client-operation-id",
        "x-correlation-id",
        "x-request-id",
    }
)
"""Headers that are written into logs, or sent on to others with what they belong to."""


@rule(id="credential-in-its-header-alone", requirement="W8.3", needs=Needs.WIRE)
class CredentialInItsHeaderAlone(Rule):
    """A secret stands in a request's Authorization header and nowhere else.

    Not in its URL, which every server and proxy on the way writes into a log; not in its body, which is kept with the
    job; not in a header that is handed on, as traces are. At another origin, in no header at all. The facts say where a
    secret stood, and never what it is.
    """

    strays = True

    def on_request(self, exchange: Exchange) -> Iterator[Finding]:
        self.judged += 1
        request = exchange.request
        places = [each for each in request.exposed if request.origin is not None or not self._is_private(each)]
        if not places or not self.first_time(*places):
            return
        went = "" if request.origin is None else f" to {request.origin}"
        told = " and ".join(each if each.startswith("header") else f"its {each}" for each in places)
        yield self.finding(
            f"{sent(exchange)}{went} bears a secret that the client was given in {told}. Attach the credential in the "
            "Authorization header, at the transport, and nowhere else.",
            exchange.sent,
        )

    @staticmethod
    def _is_private(place: str) -> bool:
        """Whether this place is between the client and the provider: a second header for the same key, say."""
        kind, _, name = place.partition(" ")
        return kind == "header" and name not in HANDED_ON
