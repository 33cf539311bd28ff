"""W4.1 to W4.3: when a job may be read again, by whom, and what a restart changes about it (nothing).

All four rules here judge the same thing, a read that came too early, and share :func:`gap_before`; they differ in who
read before.
"""

import math
from collections.abc import Iterator
from enum import Enum, auto
from typing import Final

import msgspec

from fake_provider.contract import RetryAfter
from fake_provider.facts import Endpoint
from harness.rules.chance import could_be_full_jitter
from harness.rules.registry import Needs, Rule, rule
from harness.rules.views import TERMINAL_STATES, Exchange
from harness.rules.words import answered, seconds, sent
from harness.rules.world import World
from harness.verdict import Finding

__all__: list[str] = []

STATUS = frozenset({Endpoint.STATUS})
CLOCKLESS = "provider_clock_skewed"
"""An answer with wrong times: when its dates fall due depends on whose clock they are read by."""

READS_PER_DOUBLING = 4
"""The longest gap has to double at least every fourth read, so that neither slower growth than the usual factor of two
nor jitter as wide as the gap itself (decorrelated jitter) is a breach."""

ENOUGH_WAITS: Final = 12
"""So many waits of one length chance does not draw: even of the three lengths that a coarse timer may leave, once in a
hundred thousand runs."""

LONGEST_IN_CAPS: Final = 5
"""A client that polls a few times slower than it might is slow; one that has no cap comes past this before long."""

SAME_LENGTH: Final = 0.8
"""Waits from this part of the longest on were drawn after the back-off had reached its cap."""

LATEST: Final = 48
"""How many gaps in a row are looked at: more than deadlines have room for, and few enough to be looked at each time."""


class Reader(Enum):
    """Who makes a read, seen from whoever made the one before."""

    SAME = auto()  # the same worker, undisturbed since
    HEIR = auto()  # whoever carries on after the worker before was killed, stopped or restarted
    STRANGER = auto()  # another worker, while the one before is well and running


class Gap(msgspec.Struct, frozen=True):
    """The time between a call and the answer that says when it is due."""

    call: Exchange
    giver: Exchange  # the exchange before, whose answer sets the date
    reader: Reader
    asked_s: float | None  # what its Retry-After asked for, if that answer was surely read
    base: float  # from when to count it

    @property
    def hinted_s(self) -> float | None:
        """What its Retry-After asks for, whoever may have read it: a broken body leaves the header whole."""
        answer = self.giver.answer
        return answer.retry_after_s if answer is not None and self.giver.maybe_read else None

    def early_s(self, due: float, world: World) -> float:
        """By how much the call came before ``due``; 0 if it did not, as far as clocks can tell: the host's own, which
        may be set, among them.
        """
        early = due - self.call.sent.at - world.ran_ahead_s(self.giver.sent)
        return early if early > world.slack_s else 0.0


def gap_before(world: World, call: Exchange) -> Gap | None:
    """The gap before a call, or None where nothing says when it is due or something since allows it at once."""
    is_status = call.request.endpoint is Endpoint.STATUS
    giver = call.schedule if is_status else call.previous
    if giver is None or call.licence is not None or giver.redirected or CLOCKLESS in giver.faults:
        return None
    decided = world.operation(call.operation or "").decided
    if decided is not None and (giver.ended is None or decided.seq > giver.ended.seq):
        return None  # a person said to go on
    if giver.answer is not None and giver.answer.canonical_state in TERMINAL_STATES:
        return None  # a read after the end is not early but needless: no-poll-after-terminal
    me, them = call.request.worker, giver.request.worker
    undisturbed = world.undisturbed(them, giver.sent)
    reader = Reader.HEIR if not undisturbed else Reader.SAME if me == them else Reader.STRANGER
    answer, left_at = giver.answer, giver.left_at
    asked_s, base = None, giver.sent.at
    if answer is not None and left_at is not None and world.surely_read(giver, by=me):
        asked_s = answer.retry_after_s
        if asked_s is not None:
            asked_s = max(0.0, asked_s - world.misdated_s(giver, me))
        # A date says when, counted by whoever wrote it; seconds are counted by whoever read them.
        if not answer.from_fault and world.contract.status.retry_after is not RetryAfter.HTTP_DATE:
            base = left_at
    elif reader is Reader.HEIR:
        return None  # what was not surely read, nobody can carry on from
    return Gap(call=call, giver=giver, reader=reader, asked_s=asked_s, base=base)


def shortest_gap_s(world: World) -> float | None:
    """The least time between two reads without a Retry-After; None where the run does not state it."""
    first_s = world.timing.get("poll_first_s")
    return None if first_s is None else first_s * (1 - world.time("poll_jitter", 0.1))


def told(gap: Gap) -> str:
    """What the answer before asked for."""
    asked = "" if gap.asked_s is None else f" with Retry-After {seconds(gap.asked_s)}"
    return f"{sent(gap.giver)} was {answered(gap.giver)}{asked}"


@rule(id="obeys-retry-after", requirement="W4.2", needs=Needs.WIRE)
class ObeysRetryAfter(Rule):
    """A call is not repeated before the Retry-After of the answer before it has passed.

    For status reads that of the last answer about the job, the create's included; for creates, look-ups, cancels and
    results that of the answer before of the same kind. Only an answer that surely reached the client binds it, and a
    webhook, a command or a cancel's answer since allows one read at once.
    """

    def on_request(self, exchange: Exchange) -> Iterator[Finding]:
        gap = gap_before(self.world, exchange)
        if gap is None or gap.asked_s is None or gap.reader is Reader.STRANGER:
            return
        if gap.reader is Reader.HEIR and exchange.request.endpoint is Endpoint.STATUS:
            return  # restart-continues-schedule
        self.judged += 1
        early_s = gap.early_s(gap.base + gap.asked_s, self.world)
        if early_s:
            yield self.finding(
                f"{sent(exchange)} for {exchange.operation} came {seconds(early_s)} too early: {told(gap)}. "
                "Wait as long as "
                "the provider asks.",
                gap.giver.ended,
                exchange.sent,
            )


@rule(id="backs-off", requirement="W4.2", needs=Needs.WIRE)
class BacksOff(Rule):
    """Where no Retry-After says when, the gaps between status reads grow: capped exponential back-off with jitter.

    Either no gap is shorter than the first delay the client was configured with, less the jitter, and the longest so
    far doubles at least every fourth read up to the cap. Or the gaps look as full jitter draws them, evenly between
    nothing and a bound that doubles: then no single gap tells anything, and all of them together must be more likely
    than once in a million. A change in what is answered, a takeover, a webhook or a command begins it anew. To look a
    known job up is to read its status, too.
    """

    endpoints = frozenset({Endpoint.STATUS, Endpoint.LOOKUP})

    def __init__(self, world: World) -> None:
        super().__init__(world)
        # By operation: what was answered, and the gaps between these reads.
        self._reads: dict[str, tuple[object, list[float]]] = {}

    def on_request(self, exchange: Exchange) -> Iterator[Finding]:
        name = exchange.operation or ""
        gap = gap_before(self.world, exchange)
        shortest_s = shortest_gap_s(self.world)
        if (
            gap is None
            or shortest_s is None
            or gap.hinted_s is not None
            or gap.reader is not Reader.SAME
            or gap.giver.request.endpoint is not exchange.request.endpoint
            or not self.world.observes(gap.giver)
        ):
            self._reads.pop(name, None)
            return
        answer = gap.giver.answer
        kind = None if answer is None else (answer.canonical_state, answer.status)
        before, gaps_s = self._reads.get(name, (kind, []))
        if before != kind:
            gaps_s = []
        reads, longest_s = len(gaps_s), max(gaps_s, default=0.0)
        gap_s = exchange.sent.at - gap.giver.sent.at
        gaps_s = [*gaps_s, gap_s][-LATEST:]
        self._reads[name] = (kind, gaps_s)
        cap_s = max(self.world.time("poll_cap_s", shortest_s) * (1 - self.world.time("poll_jitter", 0.1)), 0)
        grown_s = min(cap_s, shortest_s * 2 ** min(reads // READS_PER_DOUBLING, 32))
        has_grown = longest_s + self.world.slack_s >= grown_s
        least_s = min(cap_s, shortest_s) if has_grown else grown_s
        self.judged += 1
        if not gap.early_s(gap.giver.sent.at + least_s, self.world) or self._may_be_drawn(gaps_s):
            return
        yield self.finding(
            f"{sent(exchange)} for {name} follows {sent(gap.giver)} after {seconds(gap_s)}; "
            f"as read {reads + 2} in a row without news it is due after {seconds(least_s)} at the earliest, and no "
            f"jitter draws {len(gaps_s)} waits like the last ones. Back off exponentially, with jitter, up to the cap.",
            gap.giver.sent,
            exchange.sent,
        )

    def _may_be_drawn(self, gaps_s: list[float]) -> bool:
        first_s = self.world.time("poll_first_s", 0.0)
        return could_be_full_jitter(gaps_s, first_s, self.world.time("poll_cap_s", first_s))


@rule(id="waits-are-jittered", requirement="W4.2", needs=Needs.WIRE)
class WaitsAreJittered(Rule):
    """Where no Retry-After says when, chance has a part in the waits between status reads.

    Clients that wait alike come back all at once, again and again, after the outage that they met together. Judged in
    virtual time, where two waits can be the same, on the longest waits of all jobs together, which a back-off that
    reached its cap repeats; and only where the reads of several jobs show that the client's timer does not tick too
    coarsely for chance to be seen.
    """

    endpoints = STATUS

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._waits: list[tuple[float, Exchange, Exchange]] = []

    def on_request(self, exchange: Exchange) -> Iterator[Finding]:
        gap = gap_before(self.world, exchange)
        if (
            gap is not None
            and gap.hinted_s is None
            and gap.reader is Reader.SAME
            and gap.giver.request.endpoint is Endpoint.STATUS
            and gap.giver.ended is not None
            and self.world.surely_read(gap.giver, by=exchange.request.worker)
        ):
            self._waits.append((exchange.sent.at - gap.giver.ended.at, gap.giver, exchange))
        yield from ()

    def at_end(self) -> Iterator[Finding]:
        if self.world.settle_s or self.world.clocks_were_set or self.world.time("poll_jitter", 0.1) <= 0:
            return
        cap_s = max((wait_s for wait_s, _, _ in self._waits), default=0.0)
        waits = [each for each in self._waits if each[0] >= SAME_LENGTH * cap_s]
        if len(waits) < ENOUGH_WAITS:
            return
        self.judged += 1
        if cap_s - min(wait_s for wait_s, _, _ in waits) > self.world.slack_s:
            return
        times_ms = [round(1000 * read.sent.at) for _, _, read in waits]
        tick_ms = math.gcd(*(time_ms - times_ms[0] for time_ms in times_ms))
        if tick_ms / 1000 >= cap_s * self.world.time("poll_jitter", 0.1) / 2:
            return
        (_, giver, first), (_, _, last) = waits[0], waits[-1]
        yield self.finding(
            f"the {len(waits)} longest waits between status reads are of {seconds(cap_s)} each, from "
            f"{sent(giver)} and {sent(first)} to {sent(last)}. Draw each wait anew, about its nominal length or below.",
            giver.ended,
            first.sent,
            last.sent,
        )


@rule(id="waits-are-capped", requirement="W4.2", needs=Needs.WIRE)
class WaitsAreCapped(Rule):
    """Where no Retry-After says when, the waits between status reads stop growing at the cap.

    A back-off that doubles without end finds out that a job is done when as much time has passed again. A client may be
    slow on purpose, or busy with other operations: judged are waits of several times the cap it was configured with,
    after answers in which nothing was wrong, where no webhook would tell sooner and no worker was interrupted.
    """

    endpoints = STATUS

    def on_request(self, exchange: Exchange) -> Iterator[Finding]:
        world = self.world
        cap_s = world.timing.get("poll_cap_s")
        gap = gap_before(world, exchange)
        if cap_s is None or gap is None or gap.hinted_s is not None or gap.reader is not Reader.SAME:
            return
        giver = gap.giver
        if giver.ended is None or giver.status != 200 or not world.surely_read(giver, by=exchange.request.worker):
            return
        held = world.operation(exchange.operation or "").held_until > giver.ended.at
        disturbed = any(worker.cut_after(giver.sent.seq) is not None for worker in world.workers.values())
        if world.contract.webhooks.enabled or world.clocks_were_set or held or disturbed:
            return
        self.judged += 1
        # Whoever does one thing after another may have to wait for the time-out of each.
        busy_s = 1.5 * world.time("request_timeout_s", 1) * len(world.operations)
        longest_s = LONGEST_IN_CAPS * cap_s + world.time("lease_s", 2) + busy_s
        wait_s = exchange.sent.at - giver.ended.at
        if wait_s <= longest_s + world.settle_s or not self.first_time(exchange.operation):
            return
        yield self.finding(
            f"{sent(exchange)} for {exchange.operation} leaves {seconds(wait_s)} after {sent(giver)} was "
            f"{answered(giver)}, with nothing wrong; the cap of the back-off is {seconds(cap_s)}. Let the waits grow "
            "up to the cap and no further.",
            giver.ended,
            exchange.sent,
        )


@rule(id="restart-continues-schedule", requirement="W4.3", needs=Needs.WIRE)
class RestartContinuesSchedule(Rule):
    """A worker that starts, resumes or takes over keeps to the poll time that was set before.

    The next poll time belongs into the record. A fleet that restarts and polls everything at once is how an incident
    grows. Judged where the answer that set the time asked for it (Retry-After) and was read by a worker that lived on
    long enough to store it: what a client drew for itself, nobody else can tell.
    """

    endpoints = STATUS

    def on_request(self, exchange: Exchange) -> Iterator[Finding]:
        gap = gap_before(self.world, exchange)
        if gap is None or gap.reader is not Reader.HEIR or gap.asked_s is None:
            return
        self.judged += 1
        early_s = gap.early_s(gap.base + gap.asked_s, self.world)
        if early_s:
            yield self.finding(
                f"{sent(exchange)} for {exchange.operation} came {seconds(early_s)} before the next poll was "
                f"due: {told(gap)}, "
                f"and {gap.giver.request.worker} was interrupted since. Store the next poll time, and let whoever "
                "carries on keep to it.",
                gap.giver.ended,
                exchange.sent,
            )


@rule(id="one-observer-per-job", requirement="W4.1", needs=Needs.WIRE)
class OneObserverPerJob(Rule):
    """Two workers that are both well do not poll one job side by side.

    A job has one observer at a time, and one schedule. Workers may hand a job to each other between polls; what gives
    two observers away is a read before the time that a Retry-After asked for, while the one who read before is alive
    and undisturbed, or during its read.
    """

    endpoints = STATUS

    def on_request(self, exchange: Exchange) -> Iterator[Finding]:
        gap = gap_before(self.world, exchange)
        if gap is None or gap.reader is not Reader.STRANGER:
            return
        if gap.asked_s is not None:
            due = gap.base + gap.asked_s
        elif gap.giver.ended is None:
            # A sane lease is renewed before half of it has passed, so the reader before still holds it.
            due = gap.giver.sent.at + self.world.time("lease_s", 2) / 2
        else:
            return
        self.judged += 1
        early_s = gap.early_s(due, self.world)
        if early_s:
            yield self.finding(
                f"{sent(exchange)} reads job {exchange.request.job} of {exchange.operation}, which "
                f"{gap.giver.request.worker} "
                f"observes: {told(gap)}, and the next read was due {seconds(early_s)} later. Observe under a lease.",
                gap.giver.sent,
                exchange.sent,
            )
