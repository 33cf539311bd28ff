"""What a job does once it was created: how long it takes, how it ends, and what its result holds."""

from typing import Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

__all__ = ["DEFAULT", "MAX_RECORDS", "Work"]

DEFAULT: Final = "default"
"""The key under which a mapping of works says what the operations do that it does not name."""

MAX_RECORDS: Final = 100_000
"""Records in one generated result: some megabytes, which is as much as a test of a client needs to hold in memory."""


class Work(BaseModel):
    """The course of one operation's jobs when nobody interferes. Times are in seconds.

    A synchronous create (``Contract.create_answer``) ends its job at once, whatever ``queued_s`` and ``takes_s`` say.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    takes_s: float = Field(2, ge=0, description="Seconds from the start of running to the end.")
    queued_s: float = Field(0, ge=0, description="Seconds in the queue before running.")
    outcome: Literal["succeeded", "failed", "cancelled"] = Field(
        "succeeded", description="`cancelled`: the provider ends it, though nobody asked for that."
    )
    records: int = Field(3, ge=0, le=MAX_RECORDS, description="Items in the result, failed ones included.")
    failed_items: int = Field(0, ge=0, description="Of the records, those that failed.")
    row_order: Literal["given", "reversed", "mixed"] = Field(
        "given", description="In what order the result tells of the items, which are known by their ids."
    )
    partial_effects: tuple[str, ...] = Field((), description="What a cancelled or failed job leaves, as it tells.")
    error: str | None = Field(None, description="The message of a failed job.")
    heeds_cancel: bool = Field(True, description="False: a best-effort cancel is taken and not acted upon.")

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        if self.failed_items > self.records:
            raise ValueError(f"failed_items ({self.failed_items}) is part of records ({self.records})")
        if self.error is not None and self.outcome != "failed":
            raise ValueError('an error belongs to a failed job: set outcome to "failed" or leave error out')
        return self
