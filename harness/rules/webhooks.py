"""W4.7: webhooks shorten the wait and never replace the status loop. They come twice, late, forged, or not at all."""

import math
from collections.abc import Iterator
from typing import Final

from fake_provider.contract import ResultKind
from fake_provider.facts import Endpoint, EventDelivered, EventSent
from harness.history import Claimed, Entry, StateRecorded
from harness.rules.registry import Needs, Rule, rule
from harness.rules.views import Exchange
from harness.rules.words import at, sent
from harness.rules.world import World
from harness.verdict import Finding

__all__: list[str] = []

GONE: Final = 410
"""Says that no webhooks are wanted any more (Standard Webhooks)."""


TOLERANCE_S: Final = 300  # of a timestamp, on both sides of now (Standard Webhooks)
EDGE_S: Final = 1  # timestamps are whole seconds: so near to the tolerance either answer may be right


def is_success(status: int | None) -> bool:
    """2xx only is success (Standard Webhooks)."""
    return status is not None and 200 <= status < 300


@rule(id="final-read-before-success", requirement="W4.7", needs=Needs.WIRE)
class FinalReadBeforeSuccess(Rule):
    """Success is acted on, recorded or claimed only after an answer of the provider showed it; a webhook alone is not
    enough.

    A webhook may be forged, replayed, or of another job. It is a reason to read the status at once.
    """

    reaching = frozenset({"result_collecting", "succeeded"})
    endpoints = frozenset({Endpoint.RESULT})

    def on_request(self, exchange: Exchange) -> Iterator[Finding]:
        if exchange.operation is not None and self.world.contract.result.kind is not ResultKind.INLINE:
            yield from self._judge(exchange.sent, exchange.operation, f"{sent(exchange)} fetches the result")

    def on_recorded(self, entry: Entry, fact: StateRecorded) -> Iterator[Finding]:
        if fact.after in {"result_collecting", "succeeded"} and fact.before != fact.after:
            yield from self._judge(entry, fact.operation, f"{fact.worker} recorded {fact.after} {at(entry)}")

    def on_claimed(self, entry: Entry, fact: Claimed) -> Iterator[Finding]:
        if fact.state == "succeeded":
            yield from self._judge(entry, fact.operation, f"{fact.worker} claims success {at(entry)}")

    def _judge(self, entry: Entry, name: str, did: str) -> Iterator[Finding]:
        operation = self.world.operation(name)
        webhook = operation.events.get("job.succeeded")
        if webhook is None or operation.decided is not None:
            return  # with neither webhook nor answer, succeeded-only-if-remote-succeeded judges
        self.judged += 1
        if "succeeded" not in operation.shown and self.first_time(name):
            yield self.finding(
                f"{did} for {name}, but only a webhook said that the job succeeded ({at(webhook)}); no status read "
                "had shown it. "
                "Read the status once more before you believe a webhook.",
                webhook,
                entry,
            )


@rule(id="forged-webhook-refused", requirement="W4.7", needs=Needs.WIRE)
class ForgedWebhookRefused(Rule):
    """A webhook whose signature is not the provider's is not answered with success.

    2xx says "taken". Verify the signature over the raw body, in constant time, before anything else.
    """

    def on_event_delivered(self, entry: Entry, fact: EventDelivered) -> Iterator[Finding]:
        known = self.world.deliveries.get(fact.delivery)
        if known is None or known[1].genuine or fact.status is None:
            return
        self.judged += 1
        if is_success(fact.status):
            yield self.finding(
                f"the webhook {fact.event} for {known[1].operation}, signed with a secret that is not the client's, "
                "was answered "
                f"{fact.status} {at(entry)}. Verify the signature, and answer 4xx.",
                known[0],
                entry,
            )


def knows_the_job(world: World, event: EventSent, sent_at: Entry) -> bool:
    """Whether the client surely knew the job of an event when that was sent."""
    named = world.operation(event.operation or "").naming.get(event.job, ())
    return any(each.ended is not None and each.ended.seq < sent_at.seq and world.surely_read(each) for each in named)


def skews_s(sent_at: Entry, event: EventSent, arrived: Entry) -> tuple[float, float]:
    """By how much a delivery's timestamp was ahead of the clock when it was taken in, at least and at most."""
    return event.skew_s - (arrived.at - sent_at.at), event.skew_s


@rule(id="webhook-out-of-time-refused", requirement="W4.7", needs=Needs.WIRE)
class WebhookOutOfTimeRefused(Rule):
    """A webhook whose timestamp is too old or too new is not answered with success, however well it is signed.

    Whoever once recorded a delivery could play it back for ever. The tolerance is five minutes, on both sides of now
    (Standard Webhooks).
    """

    def on_event_delivered(self, entry: Entry, fact: EventDelivered) -> Iterator[Finding]:
        known = self.world.deliveries.get(fact.delivery)
        if known is None or fact.status is None:
            return
        sent_at, event = known
        least_s, most_s = skews_s(sent_at, event, entry)
        if most_s >= -TOLERANCE_S - EDGE_S and least_s <= TOLERANCE_S + EDGE_S:
            return
        if self.world.taken_events.get(fact.event, entry).seq < entry.seq:
            return  # what is known already may be answered as such, however old it is
        if self.world.clock_error_s(fact.worker, sent_at):
            return  # by its clock the timestamp may be in order
        self.judged += 1
        if is_success(fact.status):
            yield self.finding(
                f"webhook {fact.event} for {event.operation} left {at(sent_at)} with a timestamp outside the "
                "tolerance, and was "
                f"answered {fact.status}. Compare webhook-timestamp with the clock, on both sides, and answer 4xx.",
                sent_at,
                entry,
            )


@rule(id="genuine-webhook-not-refused", requirement="W4.7", needs=Needs.WIRE)
class GenuineWebhookNotRefused(Rule):
    """A webhook with a valid signature and a timestamp of today is not refused as though it were forged.

    While secrets are changed a delivery bears several signatures, and one that fits is enough: who compares the first
    only is deaf until the change is over. Judged by 400, 401 and 403, and by any other error where an event meets with
    nothing else on three attempts, though the client made a call since the first of them left (one whose store takes no
    writes makes none, and may well say so), on the documented events about a job that the client surely knew.
    """

    refusals = frozenset({400, 401, 403})
    attempts = 3
    documented = frozenset({"job.running", "job.succeeded", "job.failed", "job.cancelled"})

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._calls = 0
        self._calls_before: dict[str, int] = {}  # by event: how many there were when it was sent first
        self._errors: dict[str, float] = {}  # by event: how many attempts met with an error and nothing else

    def on_request(self, exchange: Exchange) -> Iterator[Finding]:  # noqa: ARG002
        self._calls += 1
        yield from ()

    def on_event_sent(self, entry: Entry, fact: EventSent) -> Iterator[Finding]:  # noqa: ARG002
        self._calls_before.setdefault(fact.event, self._calls)
        yield from ()

    def on_event_delivered(self, entry: Entry, fact: EventDelivered) -> Iterator[Finding]:
        known = self.world.deliveries.get(fact.delivery)
        if known is None or fact.status is None:
            return
        sent_at, event = known
        if not event.genuine or event.type not in self.documented or not knows_the_job(self.world, event, sent_at):
            return
        wrong_s = self.world.clock_error_s(fact.worker, sent_at)
        if max(map(abs, skews_s(sent_at, event, entry))) + wrong_s > TOLERANCE_S - EDGE_S:
            return  # by its clock the timestamp may be out of time
        self.judged += 1
        if is_success(fact.status) or fact.status == GONE:
            self._errors[fact.event] = -math.inf
            return
        times = self._errors[fact.event] = self._errors.get(fact.event, 0) + 1
        is_at_work = self._calls > self._calls_before.get(fact.event, self._calls)
        is_disturbed = any(worker.cut_seqs for worker in self.world.workers.values())
        often = times >= self.attempts and is_at_work and not is_disturbed
        if (fact.status in self.refusals or often) and self.first_time(fact.event):
            yield self.finding(
                f"webhook {fact.event} for {event.operation} left {at(sent_at)}, signed with the client's secret, "
                f"and was answered {fact.status}, attempt {event.attempt}. Compare each of its signatures with each "
                "secret, and take it if one fits.",
                sent_at,
                entry,
            )


@rule(id="duplicate-webhook-answered-2xx", requirement="W4.7", needs=Needs.WIRE)
class DuplicateWebhookAnswered2xx(Rule):
    """A webhook that was taken once is answered with success again.

    An error makes the provider deliver it over and over, and in the end switch the address off.
    """

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._sent_after_taking: set[int] = set()

    def on_event_sent(self, _entry: Entry, fact: EventSent) -> Iterator[Finding]:
        if fact.genuine and fact.event in self.world.taken_events:
            self._sent_after_taking.add(fact.delivery)
        return iter(())

    def on_event_delivered(self, entry: Entry, fact: EventDelivered) -> Iterator[Finding]:
        if fact.delivery not in self._sent_after_taking or fact.status is None:
            return
        event, told = self.world.deliveries[fact.delivery]
        if fact.worker is not None and not self.world.undisturbed(fact.worker, event):
            return
        wrong_s = self.world.clock_error_s(fact.worker, event)
        if max(map(abs, skews_s(event, told, entry))) + wrong_s > TOLERANCE_S - EDGE_S:
            return  # by its clock the timestamp may be out of time
        self.judged += 1
        if not is_success(fact.status) and self.first_time(fact.event):
            taken = self.world.taken_events[fact.event]
            yield self.finding(
                f"webhook {fact.event} came again {at(event)} and was answered {fact.status}, although the client had "
                "taken it "
                f"{at(taken)}. Answer 2xx to what you have; do nothing else.",
                taken,
                event,
                entry,
            )
