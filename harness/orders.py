"""What workers are told: each command written down, handed to a worker, and given again if that worker died before it
took it, as a caller would that got no answer.

All other steps of a story, and when each is due, are in ``harness.course``.
"""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fake_provider.facts import RequestSent, asked_digest, digest
from harness.history import Commanded, Entry, History, WorkerStarted
from harness.stage import Stage
from scenarios.model import Cancel, Decide, Reconcile, Submit

__all__ = ["Orders", "fingerprint_of"]


def fingerprint_of(step: Submit) -> str:
    """Return the ``sha256:…`` of a step's request, as it is written down: equal for equal requests."""
    return digest(json.dumps(step.request, sort_keys=True, separators=(",", ":")).encode())


@dataclass(frozen=True)
class _Order:
    """Something a worker is told to do."""

    command: str
    operation: str
    arguments: Mapping[str, Any]
    fingerprint: str | None = None
    changed: bool = False


@dataclass(frozen=True)
class _Given:
    """An order as it was given: to which worker, in which of its lives, and whether it took it."""

    order: _Order
    worker: str
    life: int
    done: asyncio.Future[Any]


class Orders:
    """All commands of one run.

    Args:
        workers: the names of all workers, in the order in which they are turned to.
        doubt: takes the reason why a command could not be given: a run without it proves nothing.
    """

    def __init__(
        self, *, stage: Stage, workers: Sequence[str], history: History, doubt: Callable[[str], object]
    ) -> None:
        self._stage = stage
        self._workers = workers
        self._history = history
        self._doubt = doubt
        self._requests: dict[str, str] = {}  # operation -> fingerprint of the first request for it
        self._given: set[tuple[str, str]] = set()  # commands given, by operation
        self._lives: dict[str, int] = {}  # of each worker, the one it is in
        self._open: dict[tuple[str, str], _Given] = {}  # the last of each
        self._starting: dict[str, asyncio.Future[Any]] = {}  # by operation: told to a client that has not called yet
        history.observe(self._watch)

    # -- giving

    async def give(self, step: Submit | Cancel | Reconcile | Decide, *, job: str | None = None) -> None:
        """Tell a worker what a step says: the one it names, or else the first.

        Args:
            job: for a decision, the job that it names; None for none.
        """
        if isinstance(step, Submit):
            fingerprint = fingerprint_of(step)
            first = self._requests.setdefault(step.operation, fingerprint)
            arguments: dict[str, Any] = {"request": step.request}
            order = _Order(step.do, step.operation, arguments, fingerprint, changed=fingerprint != first)
        else:
            arguments = {"who": step.who, "why": step.why}
            if isinstance(step, Decide):
                arguments |= {"state": step.state, "job": job}
            order = _Order(step.do, step.operation, arguments)
        await self._tell(order, step.worker)

    async def _tell(self, order: _Order, worker: str | None = None) -> None:
        told = worker or self.first_worker()
        if told is None or not self._stage.is_living(told):
            self._doubt(f"{order.command} {order.operation}: no living worker to tell")
            return
        key = (order.command, order.operation)
        self._history.record(
            Commanded(
                command=order.command,
                operation=order.operation,
                worker=told,
                fingerprint=order.fingerprint,
                asked=asked_digest(order.arguments["request"]) if "request" in order.arguments else None,
                repeat_of=key in self._given and not order.changed,
                changed=order.changed,
                decided=order.arguments.get("state"),
            )
        )
        self._given.add(key)
        busy = key in self._open and not self._open[key].done.done()
        done = await self._stage.command(told, order.command, order.operation, order.arguments)
        if not busy:
            self._starting[order.operation] = done
        if not order.changed:
            self._open[key] = _Given(order, told, self._lives.get(told, 0), done)

    async def repeat_lost(self) -> None:
        """Give a command again whose worker died before it took it, if there is a worker to tell."""
        for given in list(self._open.values()):
            if not self._is_with_its_worker(given) and not given.done.done() and self.first_worker() is not None:
                await self._tell(given.order)

    def first_worker(self) -> str | None:
        """Return the worker to turn to: the first that runs, else the first that lives; None if none does."""
        living = [worker for worker in self._workers if self._stage.is_living(worker)]
        running = [worker for worker in living if self._stage.is_running(worker)]
        return next(iter(running or living), None)

    def _is_with_its_worker(self, given: _Given) -> bool:
        return self._stage.is_living(given.worker) and self._lives.get(given.worker) == given.life

    # -- what became of them

    @property
    def submitted(self) -> frozenset[str]:
        """The operations that some worker was told to get done."""
        return frozenset(operation for command, operation in self._given if command == "submit")

    @property
    def any_given(self) -> bool:
        """Whether any worker was told anything."""
        return bool(self._given)

    @property
    def all_taken(self) -> bool:
        """Whether each command, as it was given last, was taken by its worker."""
        return all(given.done.done() for given in self._open.values())

    def is_under_way(self, operation: str) -> bool:
        """Whether a worker was told to get the operation done and has not taken that command yet."""
        given = self._open.get(("submit", operation))
        return given is not None and not given.done.done()

    def any_coming_up(self) -> bool:
        """Whether something was told, where each command starts a program, and has neither called nor been done yet."""
        self._starting = {name: done for name, done in self._starting.items() if not done.done()}
        return bool(self._starting)

    def forget_starts(self) -> None:
        """Count all that was told until now as come up."""
        self._starting.clear()

    def to_come(self) -> tuple[object, object]:
        """Return the commands given, and those not taken, in types of JSON."""
        waiting = [
            (*key, given.worker, self._is_with_its_worker(given))
            for key, given in self._open.items()
            if not given.done.done()
        ]
        return sorted(self._given), waiting

    def _watch(self, entry: Entry) -> None:
        if isinstance(entry.fact, RequestSent):
            self._starting.pop(entry.fact.operation or "", None)
        elif isinstance(entry.fact, WorkerStarted):
            self._lives[entry.fact.worker] = entry.fact.life
