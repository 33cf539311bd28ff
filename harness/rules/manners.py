"""Manners: how many calls a client may make in how much time, as figures with limits from what was agreed.

Each call may be right by itself and all of them together too many. The limits are wide, so that any back-off that
deserves the name stays far below them, and a loop without one does not.
"""

from collections.abc import Hashable, Iterator
from typing import ClassVar, Final

import msgspec

from fake_provider.facts import Endpoint
from harness.rules.registry import Needs, Rule, rule
from harness.rules.scheduling import shortest_gap_s
from harness.rules.views import Exchange, Operation
from harness.rules.words import seconds, sent
from harness.rules.world import World
from harness.verdict import Finding

__all__: list[str] = []

AT_ONCE: Final = 5
"""Calls of a kind that may leave without any wait between them: the first, the three more that retrying transports make
by default, and one for the luck of a client whose jitter draws its first waits near nothing."""


class Count(msgspec.Struct):
    """The calls of one kind for one purpose."""

    first: Exchange
    calls: int
    grants: int  # those there were when the count began
    invited: int = 0  # calls whose answers asked to come back sooner than the shortest wait


class Pace(Rule):
    """Common to rules by which calls of a kind for one operation may not follow each other without end and wait.

    ``AT_ONCE`` calls are free, and one more for each half of the shortest wait that has passed since the first: the
    least that a back-off with full jitter waits on the average. What happens outside gives one more each: a command, a
    webhook, a worker that is interrupted and begins again, an answer that asks to come back at once.
    """

    what: ClassVar[str]  # "status reads"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._counts: dict[Hashable, Count] = {}

    def purpose(self, exchange: Exchange, operation: Operation, /) -> Hashable:
        """What the call is for: calls are counted together that are for the same."""
        return operation.id, exchange.request.endpoint

    def grants(self, operation: Operation) -> int:
        """How many calls more than time allows there was reason for so far."""
        return operation.grants + sum(
            len(worker.cut_seqs) + len(worker.clock_settings) for worker in self.world.workers.values()
        )

    def on_request(self, exchange: Exchange) -> Iterator[Finding]:
        operation = self.world.operation(exchange.operation or "")
        shortest_s = shortest_gap_s(self.world)
        gap_s = 0.0 if shortest_s is None else shortest_s / 2
        if gap_s <= 0 or (exchange.previous is not None and exchange.previous.redirected):
            return
        key = self.purpose(exchange, operation)
        grants = self.grants(operation)
        count = self._counts.get(key)
        if count is None:
            self._counts[key] = Count(first=exchange, calls=1, grants=grants)
            return
        count.calls += 1
        previous = exchange.previous
        hint_s = previous.answer.retry_after_s if previous is not None and previous.answer is not None else None
        if previous is not None and hint_s is not None:
            hint_s -= self.world.misdated_s(previous, exchange.request.worker)
        if hint_s is not None and hint_s < gap_s:
            count.invited += 1
        self.judged += 1
        took_s = exchange.sent.at - count.first.sent.at
        extra = grants - count.grants + count.invited
        limit = AT_ONCE + int((took_s + self.world.slack_s) / gap_s) + extra
        if count.calls > limit and self.first_time(key):
            yield self.finding(
                f"{sent(exchange)} for {operation.id} is one of {count.calls} {self.what} within {seconds(took_s)}; "
                f"waiting {seconds(gap_s)} or more between two of them, it would be {limit} at most. "
                "Wait between tries, longer each time.",
                count.first.sent,
                exchange.sent,
            )


@rule(id="polls-per-job-limited", requirement="W4.2", needs=Needs.WIRE)
class PollsPerJobLimited(Pace):
    """The status reads of one job are no more than its time and the shortest wait allow.

    Whatever excuses a single read, a provider that is hammered throttles everybody.
    """

    endpoints = frozenset({Endpoint.STATUS})
    what = "status reads"

    def grants(self, operation: Operation) -> int:
        return super().grants(operation) + sum(
            len(operation.calls.get(endpoint, ())) for endpoint in (Endpoint.CANCEL, Endpoint.RESULT)
        )


@rule(id="tries-per-create-limited", requirement="W2.4", needs=Needs.WIRE)
class TriesPerCreateLimited(Pace):
    """A create that is sent again and again, or looked for again and again, waits between the tries.

    Its token makes re-sending safe, not polite: a provider in trouble is kept there by clients that retry in a loop.
    """

    endpoints = frozenset({Endpoint.CREATE, Endpoint.LOOKUP})
    what = "tries"


@rule(id="cancels-per-intent-limited", requirement="W6.4", needs=Needs.WIRE)
class CancelsPerIntentLimited(Pace):
    """The cancel calls for one stop command wait between the tries, even where a second one is harmless."""

    endpoints = frozenset({Endpoint.CANCEL})
    what = "cancel calls"

    def purpose(self, _exchange: Exchange, operation: Operation, /) -> Hashable:
        return operation.id, len(operation.cancels), len(operation.decisions)


@rule(id="result-reads-limited", requirement="W7.4", needs=Needs.WIRE)
class ResultReadsLimited(Pace):
    """The reads of one result wait between the tries.

    Results are the largest answers there are, and some links to them are counted.
    """

    endpoints = frozenset({Endpoint.RESULT})
    what = "result reads"
