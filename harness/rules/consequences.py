"""W4.7: what a webhook leads to. One that is genuine and new leads to a status read, and any other one to nothing.

How deliveries are answered is judged in ``webhooks``.
"""

import math
from collections.abc import Iterator
from typing import Final

from fake_provider.facts import Endpoint, EventDelivered, EventSent
from harness.history import Entry
from harness.rules.registry import Needs, Rule, rule
from harness.rules.scheduling import Reader, gap_before
from harness.rules.views import Exchange
from harness.rules.webhooks import is_success, knows_the_job
from harness.rules.words import at, seconds, sent
from harness.rules.world import World
from harness.verdict import Finding

__all__: list[str] = []

CONSEQUENCE_S: Final = 0.05
"""A call that leaves within this time of a webhook, and that nothing else called for, is taken for its consequence."""

THROTTLES: Final = frozenset({429, 503})
"""Answers after which a webhook need not hasten a read: the provider asked for silence."""


class WebhookConsequence(Rule):
    """Common to rules by which a webhook has no consequence.

    What gives a consequence away is a call right after it that was not due: a Retry-After said that the job was not to
    be read yet, and nothing but this webhook had happened.
    """

    endpoints = frozenset({Endpoint.STATUS, Endpoint.RESULT})

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._last: dict[str, Entry] = {}

    def without_consequence(self, entry: Entry, event: EventSent, /) -> bool:
        """Whether this webhook must not have any."""
        raise NotImplementedError

    def breach(self, exchange: Exchange, event: Entry, early_s: float) -> Finding:
        """The finding for the call ``exchange`` after ``event``."""
        raise NotImplementedError

    def on_event_sent(self, entry: Entry, fact: EventSent) -> Iterator[Finding]:
        if fact.operation is not None:
            if self.without_consequence(entry, fact):
                self.judged += 1
                self._last[fact.operation] = entry
            else:
                self._last.pop(fact.operation, None)
        return iter(())

    def on_request(self, exchange: Exchange) -> Iterator[Finding]:
        event = self._last.get(exchange.operation or "")
        if event is None or exchange.sent.at - event.at > CONSEQUENCE_S:
            return
        operation = self.world.operation(exchange.operation or "")
        if exchange.request.endpoint is Endpoint.RESULT:
            early_s = 0.0 if "succeeded" in operation.shown else CONSEQUENCE_S
        else:
            early_s = self._early_s(exchange)
        if early_s and self.first_time(event.seq):
            yield self.breach(exchange, event, early_s)

    def _early_s(self, exchange: Exchange) -> float:
        gap = gap_before(self.world, exchange)
        if gap is None or gap.reader is Reader.HEIR:
            return 0.0
        # By less than the time in which a webhook shows its effect, a client's own timer may have come first.
        early_s = 0.0 if gap.asked_s is None else gap.early_s(gap.base + gap.asked_s, self.world)
        return early_s if early_s > CONSEQUENCE_S else 0.0


@rule(id="forged-webhook-changes-nothing", requirement="W4.7", needs=Needs.WIRE)
class ForgedWebhookChangesNothing(WebhookConsequence):
    """A forged webhook has no consequence: no early status read, no result fetched.

    Else anybody who knows the address can make the client hammer the provider, or believe what is not so.
    """

    def without_consequence(self, _entry: Entry, event: EventSent, /) -> bool:
        return not event.genuine

    def breach(self, exchange: Exchange, event: Entry, early_s: float) -> Finding:
        return self.finding(
            f"{sent(exchange)} for {exchange.operation} left {seconds(exchange.sent.at - event.at)} after a "
            "forged webhook "
            f"({at(event)}), and was not due for {seconds(early_s)}. Drop what is not signed by the provider.",
            event,
            exchange.sent,
        )


@rule(id="duplicate-webhook-changes-nothing", requirement="W4.7", needs=Needs.WIRE)
class DuplicateWebhookChangesNothing(WebhookConsequence):
    """A webhook that the client has taken already has no consequence when it comes again.

    One event may be delivered dozens of times. De-duplicate by event id, durably.
    """

    def without_consequence(self, entry: Entry, event: EventSent) -> bool:
        taken = self.world.taken_events.get(event.event)
        return event.genuine and taken is not None and taken.at + self.world.settle_s <= entry.at

    def breach(self, exchange: Exchange, event: Entry, early_s: float) -> Finding:
        return self.finding(
            f"{sent(exchange)} for {exchange.operation} left {seconds(exchange.sent.at - event.at)} after a "
            "webhook that the "
            f"client had taken before ({at(event)}), and was not due for {seconds(early_s)}. De-duplicate by "
            "webhook-id.",
            event,
            exchange.sent,
        )


@rule(id="final-event-leads-to-a-read", requirement="W4.7", needs=Needs.WIRE)
class FinalEventLeadsToARead(Rule):
    """An event that says that the job has ended, and that the client took, leads to a status read.

    2xx says "taken". Who answers so and throws the event away (since a forgery had borne its id, since the job had had
    another event before, since it could not be stored) finds the end only at the next poll. A client may pay no heed to
    webhooks at all: judged where one had led to a read before it was due, and where the client was left alone for as
    long as a read may have to wait for another call or for a lease, before a deadline puts the operation to rest:
    there it stays until somebody acts, and a webhook is nobody.
    """

    endpoints = frozenset({Endpoint.STATUS, Endpoint.LOOKUP})
    ends = frozenset({"job.succeeded", "job.failed", "job.cancelled"})

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._heeds = False  # a webhook has led to an early read
        self._sent: dict[str, tuple[Entry, EventSent]] = {}  # by operation: the event of its end, not answered yet
        self._taken: dict[str, tuple[Entry, Entry]] = {}  # by operation: when it was sent, and when it was taken

    def on_event_sent(self, entry: Entry, fact: EventSent) -> Iterator[Finding]:
        name = fact.operation or ""
        known = self.world.operation(name).terminal_read
        if fact.genuine and fact.type in self.ends and known is None and knows_the_job(self.world, fact, entry):
            self._sent.setdefault(name, (entry, fact))
        return iter(())

    def on_event_delivered(self, entry: Entry, fact: EventDelivered) -> Iterator[Finding]:
        known = self.world.deliveries.get(fact.delivery)
        name = "" if known is None else known[1].operation or ""
        sent_at = self._sent.get(name)
        if sent_at is not None and sent_at[1].delivery == fact.delivery:
            if is_success(fact.status) and self.world.taken_events.get(fact.event) is entry:
                self._taken[name] = sent_at[0], entry
            else:
                del self._sent[name]
        return iter(())

    def on_request(self, exchange: Exchange) -> Iterator[Finding]:
        name = exchange.operation or ""
        if exchange.request.endpoint is Endpoint.STATUS:
            self._heeds = self._heeds or self._is_hastened(exchange)
        taken, _ = self._taken.pop(name, None), self._sent.pop(name, None)
        if taken is not None:
            yield from self._judge(name, *taken, exchange.sent, f"the first read after it is {sent(exchange)}")

    def at_end(self) -> Iterator[Finding]:
        for name, taken in self._taken.items():
            if self.world.ended is not None:
                yield from self._judge(name, *taken, self.world.ended, "no status read followed")

    def _is_hastened(self, read: Exchange) -> bool:
        """Whether a read left before the time that a Retry-After had asked for, with nothing but a webhook to call for
        it.
        """
        event, giver = read.licence, read.schedule
        if event is None or not isinstance(event.fact, EventSent):
            return False
        asked_s = giver.answer.retry_after_s if giver is not None and giver.answer is not None else None
        if giver is None or giver.left_at is None or asked_s is None or not self.world.surely_read(giver):
            return False
        return read.sent.at < giver.left_at + asked_s - CONSEQUENCE_S

    def _judge(self, name: str, left: Entry, taken: Entry, until: Entry, what: str) -> Iterator[Finding]:
        world, operation = self.world, self.world.operation(name)
        wait_s = world.one_try_s + world.time("lease_s", 2) + 1
        last = operation.last_call
        if operation.terminal_read is not None and operation.terminal_read.sent.seq < taken.seq:
            return  # a read that was under way has told the end
        began = operation.submitted
        deadline = math.inf if began is None else began.at + world.time("result_deadline_s", math.inf)
        for stop in operation.cancels:
            deadline = min(deadline, stop.at + world.time("cancel_deadline_s", math.inf))
        if (
            not self._heeds
            or world.clocks_were_set
            or any(not worker.running or worker.cut_after(left.seq) is not None for worker in world.workers.values())
            or operation.held_until > taken.at
            or (last is not None and last.sent.seq < taken.seq and last.status in THROTTLES)
            or taken.at + wait_s >= deadline
            or operation.decided is not None
            or operation.state == "human_decision_required"
            or len(operation.naming) > 1
        ):
            return
        self.judged += 1
        late_s = until.at - taken.at
        if late_s > wait_s:
            yield self.finding(
                f"the client took the event of the end of {name} {at(taken)}, and {what}: {seconds(late_s)} "
                f"went by until {at(until)[3:]}, though another webhook had hastened a read before. Mark an event "
                "as known by its own id, once it is verified and stored, and let it lead to a status read.",
                taken,
                until,
            )
