"""Where the workers of a run live: the interface between the runner and the ways to run a subject.

A stage starts, commands, stops and kills workers, hands them webhooks, and writes down what they say. It decides
nothing. In virtual time, the stages are ``subjects.in_process`` (simulated hosts) and ``subjects.patched`` (unmodified
code); in real time, ``subjects.process`` (a process for each worker) and ``subjects.one_shot`` (one for an operation).
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from fake_provider.engine import Engine
from fake_provider.facts import CommitPoint, Fact
from fake_provider.webhooks import Attempt
from harness.history import Claimed, LeaseNoted, SecretSaid, StateRecorded
from harness.subject import Claim, LeaseNote, Note, Recorded, Recording

__all__ = ["Notebook", "Stage", "SubjectBroken", "SubjectError", "Terms"]


class SubjectError(Exception):
    """The subject cannot be put under test: it cannot be imported, started or understood. The message says why, in
    one block.
    """


class SubjectBroken(Exception):
    """The subject does not keep to its protocol so badly that the run proves nothing: it hangs, floods its output, or
    ends before it began. The message says how; the verdict is unknown.
    """


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What a client is told before it starts, the same for each worker."""

    contract: Mapping[str, Any]
    timing: Mapping[str, float]
    authorization: str
    webhook_secrets: tuple[str, ...]
    seed: int

    @property
    def secrets(self) -> tuple[str, ...]:
        """All that must never appear in what a client says."""
        return (self.authorization.rpartition(" ")[2], *self.webhook_secrets)


class Stage(Protocol):
    """Workers, by name. A worker is *living* from its start to its end, and *running* while it lives and is not
    stopped.
    """

    def attach(self, engine: Engine) -> None:
        """Take the network the workers are to use."""
        ...

    async def start(self, worker: str) -> None:
        """Start a worker, for the first time or again.

        Raises:
            SubjectError: the subject cannot be started at all.
            SubjectBroken: it was started and does not come up.
        """
        ...

    def kill(self, worker: str) -> None: ...

    def stop(self, worker: str, for_s: float | None) -> None: ...

    def resume(self, worker: str) -> None: ...

    def set_clock(self, worker: str, ahead_s: float) -> None:
        """Set the wall clock of a worker's host so many seconds ahead of true time."""
        ...

    def is_living(self, worker: str) -> bool: ...

    def is_running(self, worker: str) -> bool: ...

    async def command(
        self, worker: str, command: str, operation: str, arguments: Mapping[str, Any]
    ) -> asyncio.Future[Any]:
        """Tell a worker to "submit", "cancel", "reconcile" or "decide".

        Returns:
            a future that is done once the worker took the command; never, if it dies before.
        """
        ...

    async def report(self, worker: str) -> Sequence[Claim]:
        """Ask a running worker for its claims; none when it does not answer."""
        ...

    async def deliver(self, attempt: Attempt) -> int | None:
        """Hand one webhook delivery to a worker that takes them; return its HTTP status, or None."""
        ...

    async def settle(self) -> None:
        """Let everything happen that happens at this instant, where that can be told.

        Raises:
            SubjectBroken: this run can prove nothing any more.
        """
        ...

    async def close(self, *, at_once: bool = False) -> None:
        """Leave nothing behind: ask living workers to stop, unless they are to be killed ``at_once``."""
        ...


class Notebook:
    """Writes down what workers say, without their secrets, and lets faults strike at their durable writes."""

    def __init__(self, record: Callable[[Fact], object], secrets: Sequence[str]) -> None:
        self._record = record
        self._is_closed = False
        self._secrets = [secret.encode() for secret in secrets]
        self._engine: Engine | None = None

    def close(self) -> None:
        """Write nothing more: the run was judged, and workers may still say something while they are ended."""
        self._is_closed = True

    def record(self, fact: Fact) -> None:
        """Record what a stage did with its workers."""
        if not self._is_closed:
            self._record(fact)

    def attach(self, engine: Engine) -> None:
        """Take the engine whose fault plan is asked at each durable write."""
        self._engine = engine

    def take(self, worker: str, note: Note, *, striking: bool = True) -> str | None:
        """Write a note down. Return the reason for which the store refuses this write, if a fault says so.

        Args:
            striking: whether faults may strike at this write.
        """
        match note:
            case Recording():
                return self._strike(worker, note, CommitPoint.RECEIVED, striking=striking)
            case Recorded():
                self.write(worker, "note", StateRecorded(worker=worker, **msgspec.structs.asdict(note)))
                return self._strike(worker, note, CommitPoint.COMMITTED, striking=striking)
            case LeaseNote():
                self.write(worker, "note", LeaseNoted(worker=worker, **msgspec.structs.asdict(note)))
        return None

    def take_claim(self, worker: str, claim: Claim) -> None:
        """Write down what a worker says of an operation."""
        self.write(worker, "claim", Claimed(worker=worker, at_rest=claim.at_rest, **msgspec.structs.asdict(claim)))

    def write(self, worker: str, where: str, fact: Fact) -> None:
        """Record a fact made of a worker's words, with any secret in it taken out and reported."""
        try:
            encoded = msgspec.json.encode(fact)
        except UnicodeEncodeError:  # half a surrogate pair, which no UTF-8 can hold
            fact = _in_whole_characters(fact)
            encoded = msgspec.json.encode(fact)
        if any(secret in encoded for secret in self._secrets):
            self.record(SecretSaid(worker=worker, where=where))
            for secret in self._secrets:
                encoded = encoded.replace(secret, b"[secret]")
            fact = msgspec.json.decode(encoded, type=type(fact))
        self.record(fact)

    def _strike(self, worker: str, note: Recording | Recorded, point: CommitPoint, *, striking: bool) -> str | None:
        engine = self._engine
        if engine is None or not striking:
            return None
        fate = engine.boundary.store_point(
            worker=worker, operation=note.operation, state=note.after, point=point, now=engine.clock.now()
        )
        for effect in fate.host:
            engine.affect(effect)
        return fate.refuse


def _in_whole_characters(fact: Fact) -> Fact:
    said = {name: value for name, value in msgspec.structs.asdict(fact).items() if isinstance(value, str)}
    return msgspec.structs.replace(
        fact, **{name: text.encode("utf-8", "replace").decode() for name, text in said.items()}
    )
