"""What rules look at: workers, exchanges, jobs and operations, each as far as a history has told of them.

Plain records. ``world.World`` keeps them; rules read them.
"""

from bisect import bisect_right
from typing import Final

import msgspec

from fake_provider.facts import AnswerEnded, Endpoint, Fate, JobCreated, RequestSent, ResultRead
from harness.history import Entry

__all__ = [
    "JUDGES_THE_REQUEST",
    "REDIRECTS",
    "RETRYABLE_REJECTIONS",
    "TERMINAL_STATES",
    "Exchange",
    "Job",
    "Lease",
    "Operation",
    "Worker",
    "is_ambiguous",
    "is_key_conflict",
    "is_rejection",
    "settles",
]

TERMINAL_STATES: Final = frozenset({"succeeded", "failed", "cancelled"})

REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
RETRYABLE_REJECTIONS: Final = frozenset({401, 403, 408, 409, 425, 429})
"""4xx that say "not now" or "not you" rather than "never": no definite end of a create."""


JUDGES_THE_REQUEST: Final = frozenset({400, 406, 413, 414, 415, 422})
"""4xx that say what they say of the request itself, and so of every attempt that was made with it."""


class Worker(msgspec.Struct):
    """One worker, over all its lives."""

    name: str
    running: bool = False
    dead: bool = True
    back_at: float = 0.0  # when it was started or resumed last
    life_since: int = 0  # the entry of its last start: what it was told before, it no longer knows
    cut_seqs: list[
        int
    ] = []  # entries at which it was killed, stopped, or refused a write: what it had in hand may be gone
    cut_times: list[float] = []
    clock_settings: list[tuple[int, float]] = []  # each with its entry: seconds ahead of true time from there on

    def cut(self, entry: Entry) -> None:
        self.cut_seqs.append(entry.seq)
        self.cut_times.append(entry.at)

    def cut_after(self, seq: int) -> float | None:
        """When it was first interrupted after entry ``seq``; None if it went on undisturbed."""
        place = bisect_right(self.cut_seqs, seq)
        return self.cut_times[place] if place < len(self.cut_times) else None

    def ahead_since(self, seq: int) -> list[float]:
        """How far its clock was ahead of true time, by each setting that was in force since an entry."""
        settings = [(-1, 0.0), *self.clock_settings]
        earlier = sum(since < seq for since, _ in settings)
        return [ahead_s for _, ahead_s in settings[max(0, earlier - 1) :]]


class Exchange(msgspec.Struct):
    """One request, and its answer once it has ended."""

    sent: Entry
    request: RequestSent
    operation: str | None = None  # whose it is, by the request's marker or job, else by its trace
    ended: Entry | None = None
    answer: AnswerEnded | None = None
    in_hand: bool = False  # delivered, to a worker that was running at that moment
    previous: "Exchange | None" = None  # the call of this kind for this operation before this one
    schedule: "Exchange | None" = None  # status only: the answer that said when this read is due
    licence: Entry | None = None  # status, and look-up of a known job: what happened since that allows an early one
    result: ResultRead | None = None  # result only: what the provider served
    stray: bool = False  # it belongs to no operation, or not surely to one, or went to another origin
    faults: tuple[str, ...] = ()  # the kinds that struck it

    @property
    def maybe_read(self) -> bool:
        """The client may have read the answer, whole or in part."""
        return self.answer is not None and self.answer.fate in {Fate.DELIVERED, Fate.CUT}

    @property
    def left_at(self) -> float | None:
        """When the answer began to leave the provider: from then on the client may have had it."""
        return None if self.ended is None or self.answer is None else self.ended.at - self.answer.leaving_s

    @property
    def redirected(self) -> bool:
        """The answer only pointed elsewhere: a call that follows it is the same call, going on."""
        return self.maybe_read and self.status in REDIRECTS

    @property
    def status(self) -> int | None:
        return None if self.answer is None else self.answer.status


class Job(msgspec.Struct):
    """One job at the provider: the truth."""

    id: str
    created: Entry
    fact: JobCreated
    state: str = "queued"
    moved: Entry | None = None  # its last move
    result_sha256: str | None = None
    records: int | None = None
    failed_items: int | None = None

    @property
    def terminal(self) -> bool:
        return self.state in TERMINAL_STATES


class Lease(msgspec.Struct, frozen=True):
    """A lease as its holder told of it."""

    entry: Entry
    worker: str
    fence: int
    until: float


class Operation(msgspec.Struct):
    """One operation: what was asked for, what was sent, what came back, what the client says."""

    id: str
    submitted: Entry | None = None
    submitted_again: Entry | None = None  # the last time that it was, unchanged
    changed: Entry | None = None  # the first submit of another request under this id
    cancels: list[Entry] = []  # cancel commands
    refusals: dict[str, Entry] = {}  # by command: the last that the client would not take
    asked: Entry | None = None  # the last command to look again, or the last decision: a person said to go on
    decisions: list[Entry] = []  # of people, who answer for where the operation goes on from there
    calls: dict[Endpoint, list[Exchange]] = {}
    elsewhere: list[Exchange] = []  # calls to other origins, where a redirect or a link led
    last_call: Exchange | None = None
    jobs: list[Job] = []
    several: list[Exchange] = []  # look-ups whose answers named more than one job
    naming: dict[str, list[Exchange]] = {}  # creates and look-ups whose answers named a job, by job id
    shown: dict[str, Entry] = {}  # the first answer that showed each remote state and that the client may have read
    events: dict[str, Entry] = {}  # the first genuine webhook of each type
    absences: list[Entry] = []  # authoritative look-ups that found nothing
    licence: Entry | None = None
    grants: int = 0  # how often a person or the provider gave a reason for a call that is not due
    schedule: Exchange | None = None
    held_until: float = 0.0  # by a Retry-After longer than the contract's, which the client may have read
    terminal_read: Exchange | None = None  # the read that showed the job's end, one read for certain if any was
    recorded: Entry | None = None  # the client's last history entry
    state: str | None = None  # and the local state after it
    state_before: str | None = None
    remote_job: str | None = None  # the last job id in its history
    remote_job_before: str | None = None
    recorded_states: dict[str, Entry] = {}  # the first entry that reached each local state
    leases: dict[str, Lease] = {}  # by worker, as held
    top_lease: Lease | None = None  # with the highest fence
    claims: dict[str, Entry] = {}  # by worker, the last one

    def allow(self, entry: Entry) -> None:
        """Note that a person or the provider gave a reason for a call that is not due."""
        self.licence = entry
        self.grants += 1

    @property
    def decided(self) -> Entry | None:
        """The last decision of a person."""
        return self.decisions[-1] if self.decisions else None

    @property
    def absent(self) -> Entry | None:
        """The last authoritative look-up that found nothing."""
        return self.absences[-1] if self.absences else None

    def creates(self) -> list[Exchange]:
        return self.calls.get(Endpoint.CREATE, [])


def is_ambiguous(exchange: Exchange) -> bool:
    """Whether the exchange left it open if the provider acted: no answer, part of one, or an error of the
    provider's.
    """
    answer = exchange.answer
    if answer is None or answer.fate is not Fate.DELIVERED or answer.status is None:
        return True
    return answer.status >= 500 or answer.status in {408, 409, 425}


def is_key_conflict(exchange: Exchange) -> bool:
    """Whether the answer to a create only says that its token came with another request before: there is a job of that
    token, and nothing was said of this request.
    """
    return exchange.maybe_read and exchange.answer is not None and exchange.answer.problem == "idempotency_key_reused"


def settles(operation: Operation, create: Exchange) -> bool:
    """Whether a rejection of a create leaves no doubt that the operation has no job: it speaks of the request itself,
    or no attempt before it is open. A 404 or 403 of a later attempt says nothing of what an earlier one did.
    """
    if create.status in JUDGES_THE_REQUEST:
        return True
    since = max((known.seq for known in (operation.decided, operation.absent) if known is not None), default=-1)
    before = (each for each in operation.creates() if since < each.sent.seq < create.sent.seq)
    return not any(is_ambiguous(each) for each in before)


def is_rejection(exchange: Exchange) -> bool:
    """Whether the client read a definite no: a 4xx that no later attempt would change."""
    answer = exchange.answer
    return (
        answer is not None
        and answer.fate is Fate.DELIVERED
        and answer.status is not None
        and 400 <= answer.status < 500
        and answer.status not in RETRYABLE_REJECTIONS
    )
