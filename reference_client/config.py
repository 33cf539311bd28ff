"""What a client is told before it starts: its clocks (:class:`Timing`) and the provider's promises (:class:`Terms`).

Both are frozen, keyword-only and checked whole when made.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

import msgspec

__all__ = [
    "CALL_LIMIT_FACTOR",
    "CancelMethod",
    "CancelTerms",
    "ConfigError",
    "Idempotency",
    "Lookup",
    "LookupTerms",
    "Mechanism",
    "ResultTerms",
    "StateWords",
    "StatusTerms",
    "Terms",
    "Timing",
]

CALL_LIMIT_FACTOR: Final = 1.5
"""A whole call may take this many times ``request_timeout_s``, which bounds each of its parts (connect, send, first
byte).
"""


class ConfigError(ValueError):
    """A configuration that cannot be. The message names the field, the value found and what is valid."""


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """The client's clocks, in seconds; ``poll_jitter`` is a fraction."""

    request_timeout_s: float = 30.0
    poll_first_s: float = 2.0
    poll_cap_s: float = 60.0
    poll_jitter: float = 0.1
    lease_s: float = 60.0
    create_deadline_s: float = 600.0
    result_deadline_s: float = 86_400.0
    cancel_deadline_s: float = 300.0

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if name == "poll_jitter":
                if not 0 <= value < 1:
                    raise ConfigError(f"poll_jitter: {value} is not in 0 … 1 (a fraction)")
            elif value <= 0:
                raise ConfigError(f"{name}: {value} is not above 0 (seconds)")
        if self.poll_cap_s < self.poll_first_s:
            raise ConfigError(f"poll_cap_s: {self.poll_cap_s} is less than poll_first_s, {self.poll_first_s}")

    @property
    def call_limit_s(self) -> float:
        """The longest that one outside call may take, from first byte sent to last byte read."""
        return self.request_timeout_s * CALL_LIMIT_FACTOR

    @property
    def call_lease_s(self) -> float:
        """How long a lease must last when a call starts: the call itself, and the write of its outcome."""
        return max(self.lease_s, self.call_limit_s + self.request_timeout_s / 4)


class Mechanism(StrEnum):
    HEADER = "header"
    BODY_FIELD = "body_field"
    NONE = "none"


class Lookup(StrEnum):
    CLIENT_REFERENCE = "by_client_reference"
    OPERATION_ID = "by_operation_id"
    RECENT_BY_REQUEST_ID = "recent_by_request_id"
    NONE = "none"


class Idempotency(msgspec.Struct, frozen=True, kw_only=True):
    mechanism: Mechanism = Mechanism.HEADER
    key_lifetime_s: float = 86_400.0


class LookupTerms(msgspec.Struct, frozen=True, kw_only=True):
    by: Lookup = Lookup.CLIENT_REFERENCE
    authoritative: bool = True  # an empty answer proves that there is no job


class CancelMethod(StrEnum):
    DELETE = "delete"  # DELETE on the job
    POST = "post"  # POST on the job's /cancel


class CancelTerms(msgspec.Struct, frozen=True, kw_only=True):
    method: CancelMethod = CancelMethod.DELETE
    effect: str = "accepted_only"  # "unsupported": there is no such call
    repeatable: bool = True  # a second call for one job is documented as harmless


class StateWords(msgspec.Struct, frozen=True, kw_only=True):
    """The provider's word for each state of a job. Any other word is no end (W4.5)."""

    queued: str = "queued"
    running: str = "running"
    cancelling: str = "cancelling"
    succeeded: str = "succeeded"
    failed: str = "failed"
    cancelled: str = "cancelled"

    def __post_init__(self) -> None:
        words = [getattr(self, state) for state in self.__struct_fields__]
        for word in words:
            if words.count(word) > 1:
                raise ConfigError(f"status.words: {word!r} stands for several states; each has a word of its own")


class StatusTerms(msgspec.Struct, frozen=True, kw_only=True):
    not_found_grace_s: float = 2.0
    words: StateWords = StateWords()


class ResultTerms(msgspec.Struct, frozen=True, kw_only=True):
    kind: str = "endpoint"  # "inline", "endpoint", "signed_url", "one_time"


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a provider's contract that a client acts on. Fields it does not act on are passed over."""

    name: str = "careful"
    idempotency: Idempotency = Idempotency()
    lookup: LookupTerms = LookupTerms()
    cancel: CancelTerms = CancelTerms()
    status: StatusTerms = StatusTerms()
    result: ResultTerms = ResultTerms()

    @classmethod
    def read(cls, contract: Mapping[str, Any]) -> "Terms":
        """Read a contract given as JSON.

        Raises:
            ConfigError: naming the field and what is wrong with it.
        """
        try:
            return msgspec.convert(contract, cls, strict=False)
        except msgspec.ValidationError as error:
            raise ConfigError(f"contract: {error}") from None
