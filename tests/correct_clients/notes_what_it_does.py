"""Everything is noted as it is done: leases with their fences, intents, outcomes and transitions."""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import httpx2

from harness.rules.local_states import EDGES, is_legal
from harness.subject import REST_STATES, Claim, Client, Host, LeaseNote, Recorded, Recording, WriteRefused
from tests.correct_clients._plain import Gone, PlainClient, Record


def way(before: str, after: str) -> tuple[str, ...]:
    """The states from one to another, by the shortest way that the table of transitions has."""
    ways: deque[tuple[str, ...]] = deque([(before,)])
    while ways:
        path = ways.popleft()
        if path[-1] == after:
            return path[1:]
        further = sorted(EDGES[path[-1]]) + [after] * is_legal(path[-1], after)
        ways.extend((*path, state) for state in further if state not in path)
    raise LookupError(f"there is no way from {before} to {after}")


class Noting(PlainClient):
    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.noted: dict[str, str] = host.disk.setdefault("noted", {})  # by operation: the state as noted
        self.notes: dict[str, int] = host.disk.setdefault("notes", {})  # by operation: how many there are
        self.fences: dict[str, int] = host.disk.setdefault("fences", {})
        self.holders: dict[str, str | None] = host.disk.setdefault("holders", {})

    async def submit(self, operation: str, request: Mapping[str, Any]) -> None:
        await super().submit(operation, request)
        if operation not in self.noted:
            await self._note(self.records[operation], "create_pending", "transition", "the submit", "on record")

    async def cancel(self, operation: str, who: str, why: str) -> None:
        await super().cancel(operation, who, why)
        await self._note(self.records[operation], self.noted[operation], "note", f"stop command of {who}", why)

    async def report(self) -> Sequence[Claim]:
        """What is on record: a state that is not noted yet is none."""
        return [
            claim
            if self.noted.get(claim.operation) == self._state(self.records[claim.operation])
            else Claim(operation=claim.operation, state=self.noted[claim.operation])
            for claim in await super().report()
            if claim.operation in self.noted
        ]

    async def _look_at(self, record: Record) -> None:
        if record.operation not in self.noted:
            await self._note(record, "create_pending", "transition", "the record", "its note was cut off")
        if self.noted[record.operation] in REST_STATES and record.state in REST_STATES:
            return
        try:
            await super()._look_at(record)
        except Gone:
            self.holders[record.operation] = None
            raise
        if record.owner == self.host.worker and self._state(record) != self.noted[record.operation]:
            await self._hold(record)
            await self._tell_state(record, "what came of it")

    def _state(self, record: Record) -> str:
        """The plain client's state in the words of W5."""
        if record.state == "create_unknown" and record.absent:
            return "create_pending"
        if record.state == "observing" and record.stop_at is not None:
            return "cancelling" if self.noted[record.operation] == "cancelling" else "cancel_requested"
        return record.state

    async def _tell_state(self, record: Record, cause: str) -> None:
        before, after = self.noted[record.operation], self._state(record)
        if before == after:
            return
        for state in way(before, after):
            if self.noted[record.operation] == before:
                await self._note(record, state, "transition", cause, "as the record says")
                before = state

    async def _call(
        self, record: Record, method: str, path: str, *, body: bytes | None = None, **headers: str
    ) -> httpx2.Response | None:
        name = record.operation
        await self._hold(record)
        await self._tell_state(record, "what is known")
        if record.owner != self.host.worker or record.owned_until <= self.host.store_now():
            raise Gone  # the store took its time, and another worker the lease
        record.owned_until = self.now() + self.lease_s
        await self._lease(record, "renewed")
        await self._note(record, self.noted[name], "intent", f"{method} {path}", "it is due")
        answer = await super()._call(record, method, path, body=body, **headers)
        told = "no answer" if answer is None else f"answered {answer.status_code}"
        await self._note(record, self.noted[name], "outcome", f"{method} {path}", told)
        return answer

    async def _hold(self, record: Record) -> None:
        """Say that the lease was taken, unless that was said before."""
        name = record.operation
        if self.holders.get(name) != self.host.worker:
            self.fences[name] = self.fences.get(name, 0) + 1
            self.holders[name] = self.host.worker
            await self._lease(record, "taken")

    async def _lease(self, record: Record, what: str) -> None:
        name = record.operation
        await self.host.note(LeaseNote(operation=name, what=what, fence=self.fences[name], lasts_s=self.lease_s))

    async def _note(self, record: Record, after: str, entry: str, cause: str, reason: str) -> None:
        """Note something, unless another note comes first: what was to be said is out of date then."""
        name = record.operation
        before, noted = self.noted.get(name), self.notes.get(name, 0)
        while True:
            try:
                await self.host.note(Recording(operation=name, after=after))
            except WriteRefused:
                await self.host.clock.sleep(0.2)
            else:
                break
        if before is not None and entry != "note" and self.holders.get(name) not in {None, self.host.worker}:
            raise Gone  # writing down what a person says needs no lease; all else does
        if self.notes.get(name, 0) != noted:
            return
        self.noted[name], self.notes[name] = after, noted + 1
        done = Recorded(
            operation=name,
            before=before,
            after=after,
            entry=entry,
            actor=self.host.worker,
            cause=cause,
            reason=reason,
            remote_job=record.job,
        )
        await self.host.note(done)


def build(host: Host) -> Client:
    return Noting(host)
