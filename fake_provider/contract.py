"""What a provider promises its clients: the contract, frozen and validated whole.

Each value is a thing that real providers do. A contract says nothing of faults; those break promises.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from fake_provider.lifecycle import JobState

__all__ = [
    "Cancel",
    "CancelEffect",
    "CancelMethod",
    "Contract",
    "CreateAnswer",
    "FinishedCancel",
    "Idempotency",
    "InFlight",
    "Lookup",
    "LookupBy",
    "Mechanism",
    "OtherBody",
    "Replays",
    "Result",
    "ResultKind",
    "RetryAfter",
    "StateWords",
    "Status",
    "Webhooks",
]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_enum_values=False)

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """Name what differs from the defaults only: of fifty choices, a few make a contract what it is."""
        for name, value in super().__repr_args__():
            field = type(self).model_fields.get(name or "")
            if field is None or value != field.get_default(call_default_factory=True):
                yield name, value


class Mechanism(StrEnum):
    HEADER = "header"
    BODY_FIELD = "body_field"
    NONE = "none"


class OtherBody(StrEnum):
    """What a known key with another body gets."""

    REJECT_422 = "reject_422"
    REPLAY_OLD = "replay_old"
    CREATE_NEW = "create_new"


class InFlight(StrEnum):
    """What a known key gets while its first request is still being worked on."""

    CONFLICT_409 = "conflict_409"
    WAIT = "wait"
    REPLAY = "replay"


class Replays(StrEnum):
    """What a replay tells of the job."""

    FIRST_ANSWER = "first_answer"
    CURRENT_STATE = "current_state"


class Idempotency(_Part):
    """How a create is recognised when it comes again. (IETF httpapi Idempotency-Key draft; AIP-155 for body fields)"""

    mechanism: Mechanism = Mechanism.HEADER
    required: bool = Field(True, description="A create without a key is refused with 400.")
    key_lifetime_s: float = Field(86_400, gt=0, description="Seconds for which a key is remembered.")
    other_body: OtherBody = OtherBody.REJECT_422
    in_flight: InFlight = InFlight.CONFLICT_409
    replays: Replays = Replays.FIRST_ANSWER
    replays_marked: bool = Field(True, description="Replays carry `Idempotency-Replayed: true`.")


class LookupBy(StrEnum):
    CLIENT_REFERENCE = "by_client_reference"
    OPERATION_ID = "by_operation_id"
    RECENT_BY_REQUEST_ID = "recent_by_request_id"
    NONE = "none"


class Lookup(_Part):
    """How a client finds a job whose id it never learned."""

    by: LookupBy = LookupBy.CLIENT_REFERENCE
    authoritative: bool = Field(True, description="An empty answer proves that no job exists.")
    lag_s: float = Field(0, ge=0, description="A new job shows up in look-ups only after this many seconds.")

    @model_validator(mode="after")
    def _authority_and_lag(self) -> Self:
        if self.authoritative and self.lag_s > 0:
            raise ValueError("a look-up with a lag cannot be authoritative: an empty answer would prove nothing")
        if self.by is LookupBy.NONE and self.lag_s > 0:
            raise ValueError("there is no look-up to lag: set lookup.lag_s to 0, or lookup.by to a look-up")
        return self


class CreateAnswer(StrEnum):
    ACCEPTED_202 = "accepted_202"
    CREATED_201 = "created_201"
    OK_200 = "ok_200"
    SYNCHRONOUS = "synchronous"


class CancelEffect(StrEnum):
    """What a cancel call that was answered with success means."""

    CONFIRMED = "confirmed"  # the job is cancelled when the answer is sent
    ACCEPTED_ONLY = "accepted_only"  # the job will be cancelled unless it ends first
    BEST_EFFORT = "best_effort"  # the job may ignore it
    UNSUPPORTED = "unsupported"


class FinishedCancel(StrEnum):
    """What a cancel of a finished job is answered with."""

    CONFLICT_409 = "conflict_409"
    OK_200 = "ok_200"
    NOT_FOUND_404 = "not_found_404"


class CancelMethod(StrEnum):
    DELETE = "delete"  # DELETE on the job
    POST = "post"  # POST on the job's /cancel


class Cancel(_Part):
    method: CancelMethod = CancelMethod.DELETE
    effect: CancelEffect = CancelEffect.ACCEPTED_ONLY
    takes_s: float = Field(0.5, ge=0, description="Seconds from an accepted cancel to the cancelled job.")
    finished: FinishedCancel = FinishedCancel.CONFLICT_409
    repeatable: bool = Field(True, description="A second cancel call for one job is documented as harmless.")


class RetryAfter(StrEnum):
    SECONDS = "seconds"
    HTTP_DATE = "http_date"
    NONE = "none"


Word = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,63}$")]


class StateWords(_Part):
    """The provider's word for each state of a job. ``succeeded``, ``failed`` and ``cancelled`` are ends; a word that is
    not here is none.
    """

    queued: Word = JobState.QUEUED.value
    running: Word = JobState.RUNNING.value
    cancelling: Word = JobState.CANCELLING.value
    succeeded: Word = JobState.SUCCEEDED.value
    failed: Word = JobState.FAILED.value
    cancelled: Word = JobState.CANCELLED.value

    @model_validator(mode="after")
    def _one_meaning_each(self) -> Self:
        meant: dict[str, JobState] = {}
        for state, word in self.by_state.items():
            other = meant.setdefault(word.lower(), state)
            if other is not state:
                raise ValueError(f"{other} and {state} are both told as {word!r}: give each state a word of its own")
            if word.lower() in set(JobState) - {state}:
                raise ValueError(f"{state} is told as {word!r}, which everybody takes for {JobState(word.lower())}")
        return self

    @property
    def by_state(self) -> Mapping[JobState, str]:
        """The word for each state."""
        return {state: getattr(self, state) for state in JobState}

    def tell(self, state: str) -> str:
        """Return the word for a state; what is none, as a fault may show it, goes as it is."""
        return getattr(self, state, state) if state in type(self).model_fields else state


class Status(_Part):
    words: StateWords = Field(StateWords(), description="By which the state of a job is told.")
    retry_after: RetryAfter = RetryAfter.SECONDS
    retry_after_s: int = Field(1, ge=0, description="The delay a Retry-After asks for.")
    not_found_grace_s: float = Field(
        2, ge=0, description="Seconds after accept during which 404 does not mean that there is no job."
    )
    progress: bool = True


class ResultKind(StrEnum):
    INLINE = "inline"
    ENDPOINT = "endpoint"
    SIGNED_URL = "signed_url"
    ONE_TIME = "one_time"


class Result(_Part):
    kind: ResultKind = ResultKind.ENDPOINT
    checksum: bool = Field(True, description="The status states the SHA-256 of the result.")
    size: bool = Field(True, description="The status states the size of the result in bytes.")
    record_count: bool = Field(True, description="The status states the number of records in the result.")
    partial: bool = Field(False, description="A job that ends early keeps what was done until then as its result.")
    url_lifetime_s: float = Field(60, gt=0, description="Seconds for which a signed URL works.")


class Webhooks(_Part):
    """Webhooks after Standard Webhooks."""

    enabled: bool = False
    timeout_s: float = Field(15, gt=0, description="Seconds a receiver has to answer.")
    retry_delays_s: tuple[float, ...] = Field(
        (1, 2, 4), description="Seconds before each further attempt after one that was not answered 2xx."
    )
    progress_events: bool = Field(False, description="Also tell when a job starts running.")


class Contract(_Part):
    """One provider's promises."""

    name: str = "careful"
    idempotency: Idempotency = Idempotency()
    lookup: Lookup = Lookup()
    create_answer: CreateAnswer = CreateAnswer.ACCEPTED_202
    cancel: Cancel = Cancel()
    status: Status = Status()
    result: Result = Result()
    webhooks: Webhooks = Webhooks()
    time_limit_s: float | None = Field(
        None,
        gt=0,
        description="Seconds after its create at which an unfinished job is ended, as failed; left out: never.",
    )

    @model_validator(mode="after")
    def _no_contradictions(self) -> Self:
        if self.create_answer is CreateAnswer.SYNCHRONOUS and self.webhooks.enabled:
            raise ValueError("a synchronous create has no webhooks: set webhooks.enabled to false")
        if self.create_answer is CreateAnswer.SYNCHRONOUS and self.time_limit_s is not None:
            raise ValueError("a synchronous create takes no time that could be limited: leave time_limit_s out")
        if self.lookup.by is LookupBy.RECENT_BY_REQUEST_ID and self.idempotency.mechanism is Mechanism.NONE:
            raise ValueError("lookup.by: recent_by_request_id needs an idempotency mechanism, which is where the id is")
        return self
