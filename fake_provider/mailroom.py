"""Webhooks on their way out: what is told of which job, what faults make of each delivery, what came of it. Pure."""

from collections.abc import Iterator
from typing import Final

import msgspec

from fake_provider.calls import JobView
from fake_provider.effects import HostEffect, host_effects
from fake_provider.facts import CommitPoint, Endpoint, EventDelivered, EventSent, Record
from fake_provider.faults import FaultPlan
from fake_provider.faults.course import Course, World
from fake_provider.faults.plan import Strikes
from fake_provider.job import Job
from fake_provider.lifecycle import TERMINAL, JobState
from fake_provider.webhooks import Attempt, Event, Outbox, Pending

__all__ = ["Departure", "Mailroom"]

_P: Final = CommitPoint


class Departure(msgspec.Struct, frozen=True):
    """A webhook delivery that has left: to be delivered after ``delay_s``."""

    attempt: Attempt
    pending: Pending
    delay_s: float
    strikes: Strikes | None


class Mailroom:
    """Stands between the provider, whose jobs change, and the outbox, which knows what is due."""

    def __init__(self, world: World, plan: FaultPlan, outbox: Outbox, *, record: Record) -> None:
        self._world = world
        self._plan = plan
        self.outbox = outbox
        self._record = record
        self._held: list[tuple[Pending, int]] = []
        self.came_by: dict[str, str] = {}  # job → the base URL its create came by, where that is not the provider's own

    def release(self) -> None:
        """Let go of what faults hold back."""
        for pending, _ in self._held:
            self.outbox.add(pending, 0.0)
        self._held.clear()

    def held(self) -> list[str]:
        """Return the types of the events that are held back."""
        return [pending.event.type for pending, _ in self._held]

    def event(self, view: JobView, now: float, *, kind: str | None = None, genuine: bool = True) -> Event:
        """Write a webhook event about a job."""
        base_url = self.came_by.get(view.id, self._world.base_url)
        number = self.outbox.event_id()
        world = self._world
        name, body = world.dialect.event(
            view, event=number, kind=kind, contract=world.contract, now=now, base_url=base_url
        )
        return Event(id=number, type=name, job=view.id, operation=view.operation, body=body, genuine=genuine)

    def job_moved(self, job: Job, now: float) -> None:
        """Tell of a job that changed its state, where the contract says so."""
        if not self.outbox.offered or job.synchronous:
            return
        if job.state in TERMINAL or (job.state is JobState.RUNNING and self._world.contract.webhooks.progress_events):
            self.outbox.add(Pending(event=self.event(self._world.provider.view(job, now), now)), now)

    def hold_until_overtaken(self, pending: Pending, fault: int) -> None:
        """Keep a delivery back until a later one for the same job has arrived, or the faults are healed."""
        self._held.append((pending, fault))

    def departures(self, now: float) -> Iterator[Departure]:
        """Let every delivery leave that is due, and return those that will arrive."""
        while (pending := self.outbox.take(now)) is not None:
            event = pending.event
            strikes: Strikes | None = None
            course = Course(
                self._world, Endpoint.WEBHOOK, now, job=self._world.provider.jobs.get(event.job), pending=pending
            )
            if not pending.exempt:
                strikes = self._plan.begin(Endpoint.WEBHOOK, operation=event.operation, worker=None)
            if strikes is not None:
                self._plan.strike(
                    course, strikes, _P.BEFORE_RECEIPT, exchange=None, worker=None, operation=event.operation
                )
            if course.pending is None:
                continue
            attempt = self.outbox.prepare(pending, now)
            self._record(
                EventSent(
                    delivery=attempt.delivery,
                    event=event.id,
                    type=event.type,
                    job=event.job,
                    operation=event.operation,
                    attempt=pending.attempt,
                    genuine=event.genuine,
                    skew_s=int(attempt.headers["webhook-timestamp"]) - int(now),
                )
            )
            departure = Departure(attempt, pending, course.delay_s, strikes)
            if pending.lost:
                self.arrived(departure, None, now)
            else:
                yield departure

    def arrived(self, departure: Departure, status: int | None, now: float) -> list[HostEffect]:
        """Take note of what the receiver answered (None: nothing), and return what strikes its host."""
        attempt, pending = departure.attempt, departure.pending
        self._record(
            EventDelivered(delivery=attempt.delivery, event=attempt.event, worker=attempt.worker, status=status)
        )
        self.outbox.answered(pending, status, now)
        overtaken = [one for one in self._held if one[0].event.job == attempt.job]
        for held, fault in overtaken:
            self._held.remove((held, fault))
            held.exempt = True
            self._plan.has_struck(
                fault,
                Endpoint.WEBHOOK,
                _P.BEFORE_RECEIPT,
                exchange=None,
                worker=None,
                operation=attempt.operation,
            )
            self.outbox.add(held, now)
        if departure.strikes is None or status is None:
            return []
        pending.frozen = attempt
        course = Course(
            self._world, Endpoint.WEBHOOK, now, job=self._world.provider.jobs.get(attempt.job), pending=pending
        )
        self._plan.strike(
            course,
            departure.strikes,
            _P.DELIVERED,
            exchange=None,
            worker=attempt.worker,
            operation=attempt.operation,
        )
        return list(host_effects(course, attempt.worker)) if attempt.worker is not None else []
