"""One exchange as the faults have left it so far. Faults write here; the boundary reads and acts.

A fault never acts by itself: it says what shall become of the exchange. So each kind stays a few lines, and the
boundary knows none of them by name.
"""

from collections.abc import Callable
from typing import Protocol

import msgspec

from fake_provider.calls import Call, JobView, Reply
from fake_provider.contract import Contract
from fake_provider.dialects.seam import Dialect
from fake_provider.facts import CommitPoint, Endpoint, Fate
from fake_provider.job import Job
from fake_provider.keys import Ticket
from fake_provider.provider import Provider
from fake_provider.webhooks import Event, Outbox, Pending
from fake_provider.wire import Answer, Request

__all__ = ["Course", "Mail", "World"]


class World(Protocol):
    """What is around an exchange."""

    contract: Contract
    dialect: Dialect
    provider: Provider
    base_url: str

    @property
    def mail(self) -> "Mail":
        """The way to the client's webhook receiver."""
        ...


class Mail(Protocol):
    """Webhooks on their way out."""

    outbox: Outbox

    def event(self, view: JobView, now: float, *, kind: str | None = None, genuine: bool = True) -> Event:
        """Write a webhook event about a job."""
        ...

    def hold_until_overtaken(self, pending: Pending, fault: int) -> None:
        """Keep a delivery back until a later one for the same job has gone out, or the faults are healed."""
        ...


class Course:
    """What is known of one exchange at one commit point, and what shall become of it."""

    __slots__ = (
        "alterations",
        "answer",
        "call",
        "clock_ahead_s",
        "copies",
        "delay_s",
        "endpoint",
        "fate",
        "fault",
        "job",
        "killed",
        "now",
        "pending",
        "point",
        "refusal",
        "reply",
        "request",
        "stops",
        "ticket",
        "world",
    )

    def __init__(
        self,
        world: World,
        endpoint: Endpoint,
        now: float,
        *,
        request: Request | None = None,
        call: Call | None = None,
        job: Job | None = None,
        pending: Pending | None = None,
    ) -> None:
        self.world = world
        self.endpoint = endpoint
        self.now = now
        self.point = CommitPoint.BEFORE_RECEIPT
        self.request = request
        self.call = call
        self.job = job  # the job it is about, once there is one
        self.pending = pending  # webhooks: the delivery
        self.ticket: Ticket | None = None  # creates, from ``received`` on: what the key book said
        self.reply: Reply | None = None  # from ``committed`` on; set earlier, the provider is not asked
        self.fault = 0  # the index of the fault that is striking

        self.answer: Answer | None = None  # sent instead of what the provider says
        self.alterations: list[Callable[[Answer], Answer]] = []  # made to the answer before it is sent
        self.fate: Fate | None = None  # set: no whole answer arrives
        self.delay_s = 0.0  # to wait at this point
        self.copies = 0  # to be delivered once more at this point
        self.killed = False  # the client's host dies at this point, or has died
        self.stops: list[float | None] = []  # the client's host freezes at this point: seconds, None until resumed
        self.clock_ahead_s: float | None = None  # the clock of the client's host is set so at this point
        self.refusal: str | None = None  # store only: why the write is refused

    @property
    def the_job(self) -> Job:
        """The job it is about. There must be one."""
        if self.job is None:
            raise TypeError("this is about no job")
        return self.job

    @property
    def the_view(self) -> JobView:
        """What the reply tells of its job. It must be one that does."""
        if self.view is None:
            raise TypeError(f"{type(self.reply).__name__} tells of no job")
        return self.view

    @property
    def delivery(self) -> Pending:
        """The webhook that is delivered. There must be one."""
        if self.pending is None:
            raise TypeError("no webhook is delivered here")
        return self.pending

    def reply_with(self, reply: Reply) -> None:
        """Say this instead of the truth."""
        self.reply = reply
        self.alterations.append(_from_fault)

    def show(self, **changes: object) -> None:
        """Change what the reply tells of its job. It must be one that does."""
        told = msgspec.structs.replace(self.the_view, **changes)
        assert self.reply is not None
        self.reply_with(msgspec.structs.replace(self.reply, view=told))

    @property
    def view(self) -> JobView | None:
        """What the reply tells of its job, if it does."""
        return getattr(self.reply, "view", None)

    @property
    def is_heard(self) -> bool:
        """Whether there is an answer to come, and somebody to hear it."""
        return self.fate is None and not self.killed

    def answer_with(self, answer: Answer) -> None:
        """Answer with this, whatever the provider would say."""
        self.answer = msgspec.structs.replace(answer, from_fault=True)

    def alter(self, alteration: Callable[[Answer], Answer]) -> None:
        """Change the answer before it is sent."""
        self.alterations.extend((alteration, _from_fault))

    def url(self, *, elsewhere: bool = False) -> str:
        """Return the URL that was asked for, or the same path at an origin that is not the provider's."""
        if self.request is None:
            raise TypeError("only a request has a URL")
        base_url = self.request.elsewhere_url if elsewhere else self.request.base_url
        query = f"?{self.request.query}" if self.request.query else ""
        return f"{base_url}{self.request.path}{query}"


def _from_fault(answer: Answer) -> Answer:
    return msgspec.structs.replace(answer, from_fault=True)
