"""Which jobs the provider has, in their order, and by which ids and marks each of them is found. Pure.

What the provider does with them when it is called, and how they move, is in ``fake_provider.provider``.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from fake_provider.contract import LookupBy
from fake_provider.job import Job
from fake_provider.lifecycle import JobState

if TYPE_CHECKING:  # handed in, never made here
    from random import Random

__all__ = ["MAX_JOBS", "ControlError", "JobBook", "LedgerLine"]

MAX_JOBS: Final = 100_000
"""Jobs one provider keeps. Past that a create is refused: a run that makes more is a client gone wild, not a test."""


class ControlError(ValueError):
    """Someone who steers the provider asked for what is not there. The message says what there is."""


class LedgerLine(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One job in the provider's books."""

    job: str
    operation: str | None
    state: str
    result_sha256: str | None = None
    records: int | None = None
    failed_items: int | None = None


_GONE_ON_FROM: Final = (
    "id",
    "operation",
    "token",
    "state",
    "synchronous",
    "error",
    "reads",
    "partial_effects",
    "stuck",
    "hidden",
)
"""Of a job, what decides what is answered about it, but for the times at which it moves."""


class JobBook:
    """All jobs of one provider. Going through it gives them in the order of their creation."""

    def __init__(self, *, prefix: str, random: "Random") -> None:
        """Args:
        prefix: what every job id begins with.
        random: makes the rest of it, so that equal seeds give equal runs.
        """
        self._prefix = prefix
        self._random = random
        self._all: list[Job] = []
        self._by_id: dict[str, Job] = {}  # each id that a job answers to
        self._by_operation: defaultdict[str, list[Job]] = defaultdict(list)
        self._by_operation_id: defaultdict[str, list[Job]] = defaultdict(list)
        self._by_token: defaultdict[str, list[Job]] = defaultdict(list)
        self._next_id: str | None = None

    def __iter__(self) -> Iterator[Job]:
        return iter(self._all)

    def __reversed__(self) -> Iterator[Job]:
        return reversed(self._all)

    @property
    def is_full(self) -> bool:
        """Whether there are :data:`MAX_JOBS`."""
        return len(self._all) >= MAX_JOBS

    def enter(self, job: Job) -> None:
        """Take a new job into the book, under its id and all its marks."""
        self._by_id[job.id] = job
        self._all.append(job)
        if job.operation is not None:
            self._by_operation[job.operation].append(job)
        if job.operation_id is not None:
            self._by_operation_id[job.operation_id].append(job)
        if job.token is not None:
            self._by_token[job.token].append(job)

    # -- finding ---------------------------------------------------------------------------------------------------

    def get(self, job: str | None) -> Job | None:
        """Return the job that answers to that id, or None."""
        return self._by_id.get(job) if job is not None else None

    def marked(self, by: LookupBy, value: str) -> Sequence[Job]:
        """Return the jobs whose mark of that kind is ``value``, in the order of their creation."""
        index = {
            LookupBy.CLIENT_REFERENCE: self._by_operation,
            LookupBy.OPERATION_ID: self._by_operation_id,
            LookupBy.RECENT_BY_REQUEST_ID: self._by_token,
        }[by]
        return index.get(value, ())

    def operation_of_token(self, token: str) -> str | None:
        """Return the operation whose create carried ``token``, if one did."""
        jobs = self._by_token.get(token)
        return jobs[0].operation if jobs else None

    def unfinished(self, operation: str) -> Job:
        """Return the operation's newest job that is not finished.

        Raises:
            ControlError: if it has none.
        """
        jobs = self._by_operation.get(operation, [])
        for job in reversed(jobs):
            if not job.finished:
                return job
        has = ", ".join(f"{job.id} ({job.state})" for job in jobs) or "none at all"
        raise ControlError(f"operation {operation!r} has no unfinished job; its jobs: {has}")

    # -- ids -------------------------------------------------------------------------------------------------------

    def mint_id(self) -> str:
        """Return the id of the next job."""
        minted, self._next_id = self._next_id, None
        return minted or f"{self._prefix}{self._random.getrandbits(64):016x}"

    def foreign_id(self) -> str:
        """Return an id as this provider makes them, of no job here."""
        return self.mint_id()

    def alias(self, job: Job) -> str:
        """Give a job a second id, which it answers to as to its own. Return it."""
        alias = self.mint_id()
        self._by_id[alias] = job
        return alias

    @property
    def any_created(self) -> bool:
        """Whether there is a job at all."""
        return bool(self._all)

    def reuse_last_id(self) -> None:
        """Give the next job the id of the one created last. There must be one."""
        self._next_id = self._all[-1].id

    # -- reading all of it -----------------------------------------------------------------------------------------

    def ledger(self) -> list[LedgerLine]:
        """Return every job in order of creation, as it truly is."""
        return [
            LedgerLine(
                job=job.id,
                operation=job.operation,
                state=job.state,
                result_sha256=result.sha256 if result else None,
                records=result.records if result else None,
                failed_items=result.failed if result else None,
            )
            for job in self._all
            for result in (job.result if job.state is JobState.SUCCEEDED else None,)
        ]

    def numbers(self) -> dict[int, int]:
        """Return the place of each job in the order, under the ``id()`` of the job: names that no randomness makes."""
        return {id(job): index for index, job in enumerate(self._all)}

    def fingerprint(self) -> tuple[object, ...]:
        """Return all that the provider goes by, in types of JSON. Jobs stand in their order, not under their ids, which
        are random.
        """
        number = self.numbers()
        jobs = [
            (
                job.operation,
                job.token,
                job.state,
                job.created_at,
                job.updated_at,
                job.starts_at,
                job.ends_at,
                job.reads,
                job.partial_effects,
                job.stuck,
                job.hidden,
            )
            for job in self._all
        ]
        return jobs, [number[id(job)] for job in self._by_id.values()], self._next_id is not None

    def outlook(self) -> tuple[object, ...]:
        """Return all that the provider will go on from, in types of JSON, but for times. See ``Provider.outlook``."""
        number = self.numbers()
        jobs = [
            [*(getattr(job, field) for field in _GONE_ON_FROM), job.result.sha256 if job.result else None]
            for job in self._all
        ]
        answers_to = [(name, number[id(job)]) for name, job in self._by_id.items()]
        return jobs, answers_to, self._next_id is not None
