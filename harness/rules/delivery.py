"""W2: idempotency is for uncertain delivery. What a create carries, and when it may be sent again."""

import math
import re
from collections.abc import Iterator
from itertools import zip_longest
from typing import Final

from fake_provider.contract import Mechanism
from fake_provider.facts import Endpoint
from harness.history import Claimed, Entry, StateRecorded
from harness.rules.registry import Needs, Rule, rule
from harness.rules.views import JUDGES_THE_REQUEST, Exchange, Operation, is_rejection
from harness.rules.words import answered, at, seconds, sent
from harness.rules.world import World
from harness.verdict import Finding

__all__: list[str] = []

TOKEN_BITS: Final = 128  # W2.1
FEWEST_BITS_APART: Final = 32
"""Two UUIDs of version 7 of one millisecond, of which 74 bits are random, are nearer once in ten million."""

FEWEST_DISTINCT: Final = 8  # 32 random hex digits show fewer than this once in 10 million tokens

BASE64URL: Final = re.compile(r"(?=.*[a-z])(?=.*[A-Z])[A-Za-z0-9_-]+={0,2}")
"""Letters of one case only are words, or another encoding, and what stands between them separates them."""


@rule(id="careless-replay-noticed", requirement="W2.3", needs=Needs.REPORT)
class CarelessReplayNoticed(Rule):
    """A create that is answered with the job of another request does not tie that job to the operation.

    A careful provider refuses a token that comes with another request; a careless one hands out what it made before.
    The answer names whose job it is, and a client that does not look takes another one's result for its own.
    """

    endpoints = frozenset({Endpoint.CREATE})

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._foreign: dict[tuple[str, str], Exchange] = {}  # by operation and job: the answer that named it

    def on_answer(self, exchange: Exchange) -> Iterator[Finding]:
        answer, name = exchange.answer, exchange.operation
        job = self.world.jobs.get((answer and answer.job) or "")
        if answer is None or job is None or name is None or answer.from_fault or not exchange.in_hand:
            return iter(())
        if job.fact.operation not in {None, name}:
            self.judged += 1
            self._foreign.setdefault((name, job.id), exchange)
        return iter(())

    def on_recorded(self, entry: Entry, fact: StateRecorded) -> Iterator[Finding]:
        if fact.after != "human_decision_required":
            yield from self._judge(entry, fact.operation, fact.remote_job, f"{fact.worker} recorded {fact.after}")

    def on_claimed(self, entry: Entry, fact: Claimed) -> Iterator[Finding]:
        if fact.state != "human_decision_required":
            yield from self._judge(entry, fact.operation, fact.remote_job, f"{fact.worker} claims {fact.state}")

    def _judge(self, entry: Entry, name: str, remote_job: str | None, said: str) -> Iterator[Finding]:
        told = self._foreign.get((name, remote_job or ""))
        if told is None or self.world.operation(name).decided is not None or not self.first_time(name):
            return
        job = self.world.jobs[remote_job or ""]
        yield self.finding(
            f"{said} with job {job.id} for {name} {at(entry)}, after {sent(told)} was {answered(told)}; but that job "
            f"was made of another request, for {job.fact.operation} {at(job.created)}. "
            "Compare what the answer says of the job with what was asked for, and stop where they differ.",
            job.created,
            told.ended,
            entry,
        )


class CreateRule(Rule):
    """Common to rules on the creates of one operation."""

    endpoints = frozenset({Endpoint.CREATE})

    def on_request(self, exchange: Exchange) -> Iterator[Finding]:
        if exchange.operation is not None:
            yield from self.judge_create(exchange, self.world.operation(exchange.operation))

    def judge_create(self, exchange: Exchange, operation: Operation) -> Iterator[Finding]:
        """A create of ``operation`` left."""
        raise NotImplementedError

    @property
    def has_keys(self) -> bool:
        """Whether the contract recognises a create that comes again."""
        return self.world.contract.idempotency.mechanism is not Mechanism.NONE

    @staticmethod
    def licensed(exchange: Exchange, operation: Operation) -> bool:
        """Whether a person, or proof that no job exists, came between this create and the one before it."""
        previous = exchange.previous
        return previous is not None and any(
            known is not None and known.seq > previous.sent.seq for known in (operation.decided, operation.absent)
        )


@rule(id="token-where-contract-says", requirement="W2.1", needs=Needs.WIRE)
class TokenWhereContractSays(CreateRule):
    """Every create carries its idempotency token where the contract looks for it.

    A token in the wrong place protects nothing: the re-send is a new job to the provider.
    """

    def judge_create(self, exchange: Exchange, operation: Operation) -> Iterator[Finding]:
        if not self.has_keys:
            return
        self.judged += 1
        if exchange.request.token is None and self.first_time(operation.id):
            where = {
                Mechanism.HEADER: "the Idempotency-Key header",
                Mechanism.BODY_FIELD: "the body field request_id",
            }[self.world.contract.idempotency.mechanism]
            yield self.finding(
                f"{sent(exchange)} for {operation.id} carries no token. The contract looks for it in {where}.",
                exchange.sent,
            )


def bits_apart(token: str, other: str) -> float:
    """How many bits it takes at the most to get from one token to another of the same make: those of the symbols in
    which they differ. A part that all tokens share (a name, the time) was not drawn for this one.
    """
    mine, theirs = (re.sub(r"[-_:.]", "", each) for each in (token, other))
    from_either_end = [(mine, theirs), (mine[::-1], theirs[::-1])]
    fewest: int = min(sum(a != b for a, b in zip_longest(*both)) for both in from_either_end)
    return fewest * bits_per_symbol(mine + theirs)


def bits_per_symbol(symbols: str) -> float:
    """What one symbol can hold, by the alphabet that all of them seem to be of."""
    if symbols.isdigit():
        return math.log2(10)
    return 4 if re.fullmatch(r"[0-9a-f]+|[0-9A-F]+", symbols) else 6


def token_bits(token: str) -> float:
    """The most entropy that a token of this form can hold, in bits.

    A UUID counts in full: 128 bits long, of which a version 4 leaves 122 to chance, and the IETF draft recommends it.
    What separates the parts of a token was not drawn. In base64url (RFC 4648 §5), which has letters of both cases,
    hyphen and underscore are digits like any other: 22 symbols of it are 128 bits, whichever these are.
    """
    symbols = re.sub(r"[-_:.]", "", token)
    if len(set(symbols)) < FEWEST_DISTINCT:
        return 0
    if BASE64URL.fullmatch(token):
        symbols = token.rstrip("=")
    return len(symbols) * bits_per_symbol(symbols)


@rule(id="token-has-128-bits", requirement="W2.1", needs=Needs.WIRE)
class TokenHas128Bits(CreateRule):
    """A token has a form that can hold 128 bits of entropy.

    A counter, a time or an operation id is met again by chance or on purpose, and then another's job is answered for.
    A history shows the form of a token, not how it was drawn: this rule finds what cannot be random enough, by itself
    or beside the token of the operation before, and never proves what is.
    """

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._last: tuple[str, Exchange] | None = None

    def judge_create(self, exchange: Exchange, operation: Operation) -> Iterator[Finding]:
        token = exchange.request.token
        if token is None or not self.has_keys or not self.first_time(token):
            return
        self.judged += 1
        bits = token_bits(token)
        if bits < TOKEN_BITS:
            yield self.finding(
                f"token {token} of {sent(exchange)} for {operation.id} can hold {bits:.0f} bits of entropy at most. "
                f"Draw tokens of {TOKEN_BITS} bits or more from a secure source, such as a UUID of version 4.",
                exchange.sent,
            )
        elif self._last is not None and self._last[1].operation != operation.id:
            other, theirs = self._last
            bits = bits_apart(token, other)
            if bits < FEWEST_BITS_APART:
                yield self.finding(
                    f"token {token} of {sent(exchange)} for {operation.id} differs from {other} of {sent(theirs)} for "
                    f"{theirs.operation} in {bits:.0f} bits: who knows one finds the other. "
                    f"Draw tokens of {TOKEN_BITS} bits or more from a secure source, such as a UUID of version 4.",
                    theirs.sent,
                    exchange.sent,
                )
        self._last = token, exchange


@rule(id="same-token-on-retry", requirement="W2.1", needs=Needs.WIRE)
class SameTokenOnRetry(CreateRule):
    """A create that is sent again carries the token of the first.

    Under a new token the provider takes it for new work. The token changes only when a person or an authoritative
    look-up has settled that there is no job.
    """

    def judge_create(self, exchange: Exchange, operation: Operation) -> Iterator[Finding]:
        previous = exchange.previous
        if previous is None or not self.has_keys or previous.request.token is None or exchange.request.token is None:
            return
        self.judged += 1
        if exchange.request.token == previous.request.token or self.licensed(exchange, operation):
            return
        yield self.finding(
            f"{sent(exchange)} for {operation.id} carries token {exchange.request.token}; {sent(previous)} carried "
            f"{previous.request.token} and was {answered(previous)}. Send the stored token again until the operation "
            "is resolved.",
            previous.sent,
            exchange.sent,
        )


@rule(id="same-request-on-retry", requirement="W2.2", needs=Needs.WIRE)
class SameRequestOnRetry(CreateRule):
    """A create that is sent again is the identical request.

    A careful provider refuses a known token with another body; a careless one answers with the job of the old body.
    """

    def judge_create(self, exchange: Exchange, operation: Operation) -> Iterator[Finding]:
        previous = exchange.previous
        if previous is None or operation.changed is not None:  # a changed submit is another rule's business
            return
        mine, theirs = exchange.request, previous.request
        if mine.fingerprint is None or theirs.fingerprint is None:
            return
        if self.world.contract.idempotency.mechanism is Mechanism.BODY_FIELD and mine.token != theirs.token:
            return  # the token is part of the body, and a changed token another rule's business
        self.judged += 1
        if mine.fingerprint != theirs.fingerprint:
            yield self.finding(
                f"{sent(exchange)} for {operation.id} has body {mine.fingerprint}; {sent(previous)} had "
                f"{theirs.fingerprint} and "
                f"was {answered(previous)}. Store the request as sent, and send those bytes again.",
                previous.sent,
                exchange.sent,
            )


@rule(id="no-blind-resend", requirement="W2.4", needs=Needs.WIRE)
class NoBlindResend(CreateRule):
    """Where the provider does not recognise a create that comes again, an uncertain one is not sent again.

    POST is not idempotent (RFC 9110 §9.2.2), and one blind re-send can already double the work. It may go out once
    more after a 429, which says that nothing was done, after an authoritative look-up that found nothing, or when a
    person says so.
    """

    def judge_create(self, exchange: Exchange, operation: Operation) -> Iterator[Finding]:
        previous = exchange.previous
        if previous is None or self.has_keys:
            return
        self.judged += 1
        if self.licensed(exchange, operation) or previous.redirected or previous.status == 429:
            return
        if is_rejection(previous) or self.world.known_job(operation, by=exchange.request.worker):
            return  # not uncertain: other rules judge a create after a definite answer
        yield self.finding(
            f"{sent(exchange)} for {operation.id} goes out although {sent(previous)} was {answered(previous)} and the "
            "contract has no "
            "idempotency: a second job may be the result. Look the operation up, or ask a person.",
            previous.sent,
            previous.ended,
            exchange.sent,
        )


@rule(id="no-resend-after-key-lifetime", requirement="W2.4", needs=Needs.WIRE)
class NoResendAfterKeyLifetime(CreateRule):
    """A create is not sent again once the provider may have forgotten its token.

    After the key's lifetime the same token creates anew: the re-send is as blind as one without a token. Where a
    person, or an authoritative look-up, has settled that there is no job, it is counted from the create after that.
    """

    def judge_create(self, exchange: Exchange, operation: Operation) -> Iterator[Finding]:
        if exchange.previous is None or not self.has_keys or exchange.request.token is None:
            return
        settled = max((known.seq for known in (operation.decided, operation.absent) if known is not None), default=-1)
        first = next(
            each
            for each in operation.creates()
            if each.request.token == exchange.request.token and (each is exchange or each.sent.seq > settled)
        )
        if first is exchange:
            return
        self.judged += 1
        age, lifetime = exchange.sent.at - first.sent.at, self.world.contract.idempotency.key_lifetime_s
        if age <= lifetime + self.world.slack_s + self.world.fell_behind_s(first.sent):
            return
        yield self.finding(
            f"{sent(exchange)} for {operation.id} uses a token first sent {at(first.sent)}, {seconds(age)} before; "
            "the provider keeps "
            f"it for {seconds(lifetime)}. Look the operation up, or ask a person.",
            first.sent,
            exchange.sent,
        )


@rule(id="no-create-after-deadline", requirement="W2.4", needs=Needs.WIRE)
class NoCreateAfterDeadline(CreateRule):
    """A create is not sent again after the create deadline.

    Counted from the first create, which is later than the record and so to the client's favour. Past it, trying on is
    a person's decision.
    """

    def judge_create(self, exchange: Exchange, operation: Operation) -> Iterator[Finding]:
        deadline_s = self.world.timing.get("create_deadline_s")
        first = operation.creates()[0]
        if first is exchange or deadline_s is None:
            return
        self.judged += 1
        late_s = exchange.sent.at - first.sent.at - deadline_s - self.world.fell_behind_s(first.sent)
        if late_s <= self.world.slack_s or self.licensed(exchange, operation) or operation.asked is not None:
            return
        yield self.finding(
            f"{sent(exchange)} for {operation.id} leaves {seconds(late_s)} after the create deadline of "
            f"{seconds(deadline_s)} from "
            f"{sent(first)}. Past the deadline an operation that is still unknown waits for a person.",
            first.sent,
            exchange.sent,
        )


@rule(id="no-create-once-accepted", requirement="W2.2", needs=Needs.WIRE)
class NoCreateOnceAccepted(CreateRule):
    """Once an answer that surely reached the client has named the job, no create is sent for the operation.

    The operation has its job; whatever goes wrong afterwards (a failed poll, an expired result link) another create
    cannot mend.
    """

    def judge_create(self, exchange: Exchange, operation: Operation) -> Iterator[Finding]:
        if exchange.previous is None and not operation.naming:
            return
        self.judged += 1
        # What was known before a person decided, the person has settled.
        known = self.world.known_job(operation, by=exchange.request.worker, since=operation.decided)
        if known is None or self.licensed(exchange, operation):
            return
        job, told = known
        yield self.finding(
            f"{sent(exchange)} for {operation.id} goes out although {sent(told)} was {answered(told)} and named job "
            f"{job}. "
            "Store the job id at once and observe that job.",
            told.ended,
            exchange.sent,
        )


@rule(id="no-create-after-rejection", requirement="W2.4", needs=Needs.WIRE)
class NoCreateAfterRejection(CreateRule):
    """After a definite rejection that surely reached the client, no create is sent for the operation.

    400, 404, 413, 422 and their like say "never" to this request; the identical request gets the identical answer.
    (401, 403, 408, 409, 425 and 429 do not. Nor does a 404 and its like say anything of an earlier attempt that was not
    answered, which the client may still try to resolve.)
    """

    def judge_create(self, exchange: Exchange, operation: Operation) -> Iterator[Finding]:
        previous = exchange.previous
        if previous is None:
            return
        self.judged += 1
        if not is_rejection(previous) or not self.world.surely_read(previous, by=exchange.request.worker):
            return
        unresolved = previous.previous is not None and previous.status not in JUDGES_THE_REQUEST
        if unresolved or self.licensed(exchange, operation):
            return
        yield self.finding(
            f"{sent(exchange)} for {operation.id} goes out although {sent(previous)} was {answered(previous)}: a "
            "definite rejection. "
            "Record the operation as failed.",
            previous.ended,
            exchange.sent,
        )
