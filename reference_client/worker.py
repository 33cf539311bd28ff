"""The shell around the workflow: take a lease, do one action, store what became of it, repeat (W4.1, W9).

A burst is all that one lease is used for: from an operation that is due to one that waits or rests. Between bursts
the worker sleeps until the store's next due time, or until it is woken. It may be frozen or killed at any ``await``:
whatever it leaves behind, the next owner of the lease can tell what was done, what was about to be done, and goes on
from there.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import msgspec

from reference_client.adapters.protocol import Answer, NoAnswer
from reference_client.caller import Caller
from reference_client.clock import Clock
from reference_client.config import Timing
from reference_client.files import ResultFiles
from reference_client.operation import Operation
from reference_client.steps import Step
from reference_client.stores.protocol import Claimed, Lease, LeaseLost, OperationStore, StoreRefused
from reference_client.workflow import Collect, Rest, Send, Settle, Wait, Workflow

__all__ = ["Worker"]

_LOG: Final = logging.getLogger(__name__)
_T = TypeVar("_T")

_SHORTEST_SLEEP_S: Final = 0.001
"""Clocks differ in their last digits: a shorter sleep may end just before the moment that it was for."""

_REFUSED_FIRST_S: Final = 0.05
_REFUSED_CAP_S: Final = 5.0
"""Waits between tries of a write that the store refused: short first, because an answer in hand is worth keeping."""


class Worker:
    """One worker on one store.

    Args:
        name: who holds the leases, and acts in the history; unique among living workers.
        store: shared with other workers.
        workflow: decides.
        caller: makes the calls.
        clock: waits.
        timing: the lengths of leases and calls.
        files: where large results go; None: all results stay in the store.
        concurrency: how many operations are in hand at once.
        idle_s: how often to look for work that another process put into the store; default the length of a lease.
    """

    def __init__(
        self,
        name: str,
        *,
        store: OperationStore,
        workflow: Workflow,
        caller: Caller,
        clock: Clock,
        timing: Timing,
        files: ResultFiles | None = None,
        concurrency: int = 16,
        idle_s: float | None = None,
    ) -> None:
        self.name = name
        self.store = store
        self.workflow = workflow
        self.caller = caller
        self._clock = clock
        self._timing = timing
        self._files = files
        self._concurrency = concurrency
        self._idle_s = timing.lease_s if idle_s is None else idle_s
        self._bursts: set[asyncio.Task[None]] = set()
        self._woken: asyncio.Future[None] | None = None
        self._wake_kept = False
        self._stopping = False
        self._refused = 0
        self._in_hand: dict[str, Step] = {}
        """Outcomes that the store would not take while the lease lasted. Should the operation come to this worker
        again before anyone else had it, they are still true.
        """
        self._insisting: dict[str, int] = {}  # by operation: how often the store has refused the write under way

    # from outside

    def wake(self) -> None:
        """Look for due work now: something was submitted, ordered or reported."""
        if self._woken is not None and not self._woken.done():
            self._woken.set_result(None)
        else:
            self._wake_kept = True

    def stop(self) -> None:
        """Take no new work; :meth:`run` returns when what is in hand is at a resting place."""
        self._stopping = True
        self.wake()

    def memory(self) -> object:
        """What this worker knows that its store does not, in types of JSON; without the bursts under way."""
        return sorted(self._in_hand), dict(self._insisting), self._refused, self._wake_kept, self._stopping

    async def run(self) -> None:
        """Work until stopped."""
        while not self._stopping:
            if len(self._bursts) >= self._concurrency:
                await self._pause(None)
                continue
            try:
                claimed = await self.store.claim(self.name, self._timing.lease_s)
                due_in_s = await self.store.due_in_s() if claimed is None else None
            except StoreRefused as error:
                await self._pause(self._refusal_wait_s(error))
                continue
            self._refused = 0
            if claimed is None:
                await self._pause(self._idle_s if due_in_s is None else min(due_in_s, self._idle_s))
                continue
            burst = asyncio.create_task(self._burst(claimed))
            self._bursts.add(burst)
            burst.add_done_callback(self._burst_ended)
        while self._bursts:
            await self._pause(None)

    async def _pause(self, seconds: float | None) -> None:
        """Sleep ``seconds`` (None: for good), but no longer than until the next wake."""
        if self._wake_kept:
            self._wake_kept = False
            return
        woken = self._woken = asyncio.get_running_loop().create_future()
        sleeper = None
        if seconds is not None:
            sleeper = asyncio.create_task(self._clock.sleep(max(seconds, _SHORTEST_SLEEP_S)))
            sleeper.add_done_callback(lambda _: _fulfil(woken))
        try:
            await woken
        finally:
            self._woken = None
            self._wake_kept = False  # whatever it was kept for is looked at next
            if sleeper is not None:
                sleeper.cancel()

    def _burst_ended(self, burst: asyncio.Task[None]) -> None:
        self._bursts.discard(burst)
        if not burst.cancelled() and (error := burst.exception()) is not None:
            # A bug of ours. The lease expires, and the operation is found as it was left.
            _LOG.error("a burst of %s ended badly", self.name, exc_info=error)
        self.wake()

    # one lease

    async def _burst(self, claimed: Claimed) -> None:
        try:
            await self._work(claimed)
        except LeaseLost:
            _LOG.info("%s lost its lease on %s", self.name, claimed.lease.operation_id)
        except StoreRefused as error:
            _LOG.info("%s gives %s up for now: %s", self.name, claimed.lease.operation_id, error)

    async def _work(self, claimed: Claimed) -> None:
        lease, operation, workflow = claimed.lease, claimed.operation, self.workflow
        in_hand = self._in_hand.pop(operation.operation_id, None)
        if operation.in_flight is not None:
            if in_hand is not None and in_hand.operation.version == operation.version + 1:
                step = in_hand
            else:
                step = workflow.interrupted(operation, actor=self.name, now=await self.store.now())
            lease, operation = await self._keep(lease, step)
        for given in claimed.commands:
            step = workflow.take_up(operation, given.command, actor=self.name, now=await self.store.now())
            lease, operation = await self._keep(lease, step, taken=(given.number,))
        now = await self.store.now()
        action = workflow.next_action(operation, now)
        last: Step | None = None
        while not isinstance(action, Wait | Rest):
            if last is not None:
                lease, operation = await self._keep(lease, last)
            lease, last = await self._act(lease, operation, action, now)
            now = await self.store.now()
            action = workflow.next_action(last.operation, now)
        await self._leave(lease, last, action.until if isinstance(action, Wait) else None)

    async def _act(
        self, lease: Lease, operation: Operation, action: Send | Settle | Collect, now: float
    ) -> tuple[Lease, Step]:
        """Do one action; return the step that says what became of it, to be stored next."""
        workflow = self.workflow
        if isinstance(action, Settle):
            return lease, workflow.settle(operation, action, actor=self.name, now=now)
        if isinstance(action, Collect):
            return lease, workflow.collect(operation, actor=self.name, now=now)
        intent = workflow.begin(operation, action, worker=self.name, fence=lease.fence, now=now)
        lease, operation = await self._keep(lease, intent, lasts_s=self._timing.call_lease_s)
        lease, answer = await self._call(lease, operation)
        return lease, workflow.conclude(operation, answer, actor=self.name, now=answer.received_at)

    async def _call(self, lease: Lease, operation: Operation) -> tuple[Lease, Answer | NoAnswer]:
        """Make the call whose intent is stored. The lease is looked at once more, last thing before sending (W4.1)."""
        request = self.workflow.request(operation)
        lease = await self._insist(lease, lambda: self.store.renew(lease, self._timing.call_lease_s))
        answer = await self.caller.call(operation, request)
        return lease, msgspec.structs.replace(answer, received_at=await self.store.now())

    async def _keep(
        self, lease: Lease, step: Step, *, taken: tuple[int, ...] = (), lasts_s: float = 0.0
    ) -> tuple[Lease, Operation]:
        """Make a step durable and go on with it."""

        async def write() -> tuple[Lease, Operation]:
            filed = self._file(step)
            return await self.store.commit(lease, filed, taken=taken, lasts_s=lasts_s), filed.operation

        return await self._insist(lease, write, step)

    async def _leave(self, lease: Lease, step: Step | None, due_at: float | None) -> None:
        """Make the last step of a burst durable and give the lease back."""

        async def write() -> None:
            await self.store.release(lease, None if step is None else self._file(step), due_at=due_at)

        await self._insist(lease, write, step)

    async def _insist(self, lease: Lease, write: Callable[[], Awaitable[_T]], step: Step | None = None) -> _T:
        """Try a write again while the lease lasts: what it holds may exist nowhere else. Then keep it in hand.

        Raises:
            LeaseLost: as soon as the store says so.
            StoreRefused: when the lease has run out over it.
        """
        tries = 0
        try:
            while True:
                try:
                    return await write()
                except StoreRefused:
                    wait_s = min(_REFUSED_CAP_S, _REFUSED_FIRST_S * 2**tries)
                    if await self.store.now() + wait_s >= lease.until:
                        if step is not None and step.operation.in_flight is None:
                            self._in_hand[lease.operation_id] = step
                        raise
                    tries = self._insisting[lease.operation_id] = tries + 1
                    await self._clock.sleep(wait_s)
        finally:
            self._insisting.pop(lease.operation_id, None)

    def _refusal_wait_s(self, error: StoreRefused) -> float:
        _LOG.info("%s: the store refuses: %s", self.name, error)
        self._refused += 1
        return min(_REFUSED_CAP_S, self._idle_s, _REFUSED_FIRST_S * 2.0 ** min(self._refused, 16))

    def _file(self, step: Step) -> Step:
        """Put a large result into a file, durable before the record that names it (W7.3)."""
        collected = step.operation.collected
        if step.result is None or collected is None or collected.location == "store":
            return step
        files = self._files
        location = "store" if files is None else str(files.keep(step.result, sha256=collected.sha256))
        named = msgspec.structs.replace(collected, location=location)
        return Step(msgspec.structs.replace(step.operation, collected=named), step.entries, step.result)


def _fulfil(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
