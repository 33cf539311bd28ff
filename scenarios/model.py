"""A scenario: a story as data. What is agreed, who does what and when, what goes wrong, what must hold at the end.

Here are its shape and its meaning. Reading files, and saying where in a file an error sits, is in
``scenarios.loading``. Fault kinds are in ``fake_provider.faults``, contracts in ``fake_provider.contract``, and what
jobs do in ``fake_provider.work``.
"""

from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from fake_provider.contract import CancelEffect, Contract, CreateAnswer
from fake_provider.facts import Endpoint
from fake_provider.faults import AnyFault
from fake_provider.faults.kinds import AheadS
from fake_provider.faults.untruths import UnknownState
from fake_provider.lifecycle import JobState
from fake_provider.presets import preset
from fake_provider.work import DEFAULT, Work

__all__ = [
    "Arm",
    "Cancel",
    "Complete",
    "Decide",
    "DecidedState",
    "Fail",
    "Heal",
    "Kill",
    "Mode",
    "OperationId",
    "Reconcile",
    "RestState",
    "Resume",
    "Scenario",
    "SetClock",
    "Start",
    "Step",
    "Stop",
    "Submit",
    "Timing",
    "Wait",
    "WorkerId",
]

_MOST_WORKERS: Final = 9  # a story with more hands than that explains nothing
_LONGEST_S: Final = 7 * 86_400  # past any lifetime of a token; a client is asked every second of it how far it is
_MOST_STEPS: Final = 10_000  # the benchmark of one run with many operations; a person writes ten


def _not_a_worker(text: str) -> str:
    if text[0] == "w" and text[1:].isdigit():
        raise ValueError(f"{text!r} would be read as a worker in an address; name the operation otherwise")
    return text


OperationId = Annotated[
    str,
    Field(
        pattern=r"^[a-z][a-z0-9-]*$",
        description="The client's name for what a person wants done. Not of the form w1: those are workers.",
    ),
    AfterValidator(_not_a_worker),
]
WorkerId = Annotated[str, Field(pattern=r"^w[1-9][0-9]*$", description="One running instance of the client: w1, w2 …")]
Mode = Literal["simulated", "patched", "process"]

RestState = Literal[
    "succeeded",
    "failed",
    "cancelled",
    "withdrawn",
    "result_timed_out",
    "cancellation_unconfirmed",
    "result_unavailable",
    "result_validation_failed",
    "human_decision_required",
]
"""The local states in which nothing more happens to an operation until someone acts (W5)."""


DecidedState = Literal[
    "create_pending",
    "create_unknown",
    "reconciliation",
    "accepted",
    "observing",
    "cancel_requested",
    "cancelling",
    "result_collecting",
    "succeeded",
    "failed",
    "cancelled",
    "withdrawn",
    "result_timed_out",
    "cancellation_unconfirmed",
    "result_unavailable",
    "result_validation_failed",
]
"""What a person may decide for: any local state but the one in which a decision is waited for."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Timing(_Part):
    """The client's clocks, in seconds. Short, so that one file serves simulated and real time."""

    request_timeout_s: float = Field(1.0, gt=0, description="How long a client waits for an answer.")
    poll_first_s: float = Field(0.5, gt=0, description="The first delay of the back-off between status reads.")
    poll_cap_s: float = Field(2.0, gt=0, description="The longest delay of that back-off.")
    poll_jitter: float = Field(0.1, ge=0, le=1, description="The random part of a delay, as a fraction of it.")
    lease_s: float = Field(2.0, gt=0, description="How long a worker owns an operation without renewing.")
    create_deadline_s: float = Field(10.0, gt=0, le=_LONGEST_S, description="How long to try for a job id.")
    result_deadline_s: float = Field(
        20.0, gt=0, le=_LONGEST_S, description="How long the business waits for the result."
    )
    cancel_deadline_s: float = Field(
        5.0, gt=0, le=_LONGEST_S, description="How long to wait for a cancel to be confirmed."
    )

    @model_validator(mode="after")
    def _cap_over_first(self) -> Self:
        if self.poll_cap_s < self.poll_first_s:
            raise ValueError(f"poll_cap_s ({self.poll_cap_s}) is under poll_first_s ({self.poll_first_s})")
        return self


class _Step(_Part):
    at: float = Field(ge=0, le=_LONGEST_S, description="Seconds from the start of the run.")


class Submit(_Step):
    """Ask a worker to get an operation done.

    The same operation with the same parameters once more is a repeat; with other parameters it is another request
    under a known id, which a client must refuse (W1.7).
    """

    do: Literal["submit"] = "submit"
    operation: OperationId
    worker: WorkerId | None = Field(None, description="Who is asked; the first living worker if left out.")
    parameters: dict[str, JsonValue] = Field({}, description="What the job is to do; any JSON.")

    @property
    def request(self) -> dict[str, Any]:
        """The create body the client is given. Its marker joins requests and jobs to the operation."""
        return {"kind": "report", "client_reference": self.operation, "parameters": self.parameters}


class Cancel(_Step):
    """Tell a worker to stop an operation."""

    do: Literal["cancel"] = "cancel"
    operation: OperationId
    who: str = Field("operator", min_length=1)
    why: str = Field("no longer needed", min_length=1)
    worker: WorkerId | None = Field(None, description="Who is told; the first living worker if left out.")


class Reconcile(_Step):
    """Tell a worker that a person wants a resting operation looked at again."""

    do: Literal["reconcile"] = "reconcile"
    operation: OperationId
    who: str = Field("operator", min_length=1)
    why: str = Field("asked to look again", min_length=1)
    worker: WorkerId | None = Field(None, description="Who is told; the first living worker if left out.")


class Decide(_Step):
    """Tell a worker what a person decided about an operation that waits for a decision.

    The person has asked the provider: unless it is decided that there is no job, or that it is still to be found, the
    decision names the operation's newest job in the provider's books.
    """

    do: Literal["decide"] = "decide"
    operation: OperationId
    state: DecidedState = Field(description="The local state that the operation is to go on from.")
    who: str = Field("operator", min_length=1)
    why: str = Field("looked into it", min_length=1)
    worker: WorkerId | None = Field(None, description="Who is told; the first living worker if left out.")


class Start(_Step):
    """Start a worker that is dead."""

    do: Literal["start"] = "start"
    worker: WorkerId


class Kill(_Step):
    """Kill a worker, as SIGKILL does: nothing of it runs any more."""

    do: Literal["kill"] = "kill"
    worker: WorkerId


class Stop(_Step):
    """Freeze a worker, as SIGSTOP does: it does nothing, and its timers run on."""

    do: Literal["stop"] = "stop"
    worker: WorkerId


class Resume(_Step):
    """Let a stopped worker go on."""

    do: Literal["resume"] = "resume"
    worker: WorkerId


class SetClock(_Step):
    """Set the wall clock of a worker's host wrong, until healed. Its monotonic clock runs on as it did."""

    do: Literal["set_clock"] = "set_clock"
    worker: WorkerId
    ahead_s: AheadS


class Complete(_Step):
    """The provider's job of an operation succeeds now."""

    do: Literal["complete"] = "complete"
    operation: OperationId


class Fail(_Step):
    """The provider's job of an operation fails now."""

    do: Literal["fail"] = "fail"
    operation: OperationId
    error: str | None = Field(None, description="What the provider gives as the reason.")


class Arm(_Step):
    """Plan one more fault from here on."""

    do: Literal["arm"] = "arm"
    fault: AnyFault


class Heal(_Step):
    """Disarm all faults from here on."""

    do: Literal["heal"] = "heal"


class Wait(_Step):
    """Nothing is done; time passes until here. For stories that end with waiting, as explored ones may."""

    do: Literal["wait"] = "wait"


Step = Annotated[
    Submit
    | Cancel
    | Reconcile
    | Decide
    | Start
    | Kill
    | Stop
    | Resume
    | SetClock
    | Complete
    | Fail
    | Arm
    | Heal
    | Wait,
    Field(discriminator="do"),
]


def _named_contract(value: object) -> object:
    return preset(value) if isinstance(value, str) else value


_Location = tuple[str | int, ...]


class Scenario(_Part):
    """A story as data."""

    name: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", description="The same as the file's name.")
    summary: str = Field(min_length=1, description="One sentence: what happens.")
    requirements: tuple[Annotated[str, Field(pattern=r"^W([1-9]|10)(\.[1-9])?$")], ...] = Field(
        (), description="The requirements the story is about: W3.1 …"
    )
    contract: Annotated[Contract, BeforeValidator(_named_contract, json_schema_input_type=Contract | str)] = Field(
        Contract(), description="What the provider promises: a mapping, or the name of a preset."
    )
    workers: int = Field(1, ge=1, le=_MOST_WORKERS, description="w1 … wn on one durable store, started at 0.")
    timing: Timing = Field(Timing(), description="The client's clocks.")
    work: dict[OperationId, Work] = Field({}, description="What jobs do, by operation; `default` for the rest.")
    steps: tuple[Step, ...] = Field(min_length=1, max_length=_MOST_STEPS, description="Who does what, and when.")
    faults: tuple[AnyFault, ...] = Field((), description="What goes wrong, armed from the beginning.")
    ends: dict[OperationId, Annotated[tuple[RestState, ...], Field(min_length=1)]] = Field(
        {}, description="The local states in which an operation may rest at the end."
    )
    jobs: dict[OperationId, Annotated[int, Field(ge=0)]] = Field(
        {}, description="How many jobs the provider's ledger may hold for an operation."
    )
    modes: Annotated[tuple[Mode, ...], Field(min_length=1)] = Field(
        ("simulated", "patched", "process"), description="How the story can be run."
    )
    drain_s: float = Field(
        60.0, gt=0, le=_LONGEST_S, description="How long everything may take to come to rest after healing."
    )
    seed: int = Field(0, ge=0, description="What randomness starts from, unless the command line says otherwise.")

    @model_validator(mode="after")
    def _meaning(self) -> Self:
        found = [
            InitErrorDetails(type=PydanticCustomError("meaning", "{problem}", {"problem": text}), loc=where, input=None)
            for where, text in _contradictions(self)
        ]
        if found:
            raise ValidationError.from_exception_data(type(self).__name__, found)
        return self

    @property
    def operations(self) -> tuple[str, ...]:
        """The operations that are submitted, in the order of their first submit."""
        return tuple(dict.fromkeys(step.operation for step in self.steps if isinstance(step, Submit)))

    @property
    def worker_ids(self) -> tuple[str, ...]:
        return tuple(f"w{number}" for number in range(1, self.workers + 1))

    def can_mean(self, fault: AnyFault) -> bool:
        """Whether ``fault`` speaks only of what this story has: its workers, its operations, its webhooks."""
        return next(_in_fault(self, fault, ()), None) is None


def _contradictions(scenario: Scenario) -> Iterator[tuple[_Location, str]]:
    """What is well-formed and yet cannot be meant: where, and why."""
    yield from _in_steps(scenario)
    operations = scenario.operations
    for key in ("work", "ends", "jobs"):
        for operation in getattr(scenario, key):
            if operation not in operations and not (key == "work" and operation == DEFAULT):
                yield (key, operation), f"no step submits {operation!r}; submitted: {_listed(operations)}"
    for number, fault in enumerate(scenario.faults):
        yield from _in_fault(scenario, fault, ("faults", number))
    effect = scenario.contract.cancel.effect
    if effect is not CancelEffect.BEST_EFFORT:
        why = f"only a contract with cancel.effect best_effort allows that; this one says {effect}"
        yield from (
            (("work", operation, "heeds_cancel"), why)
            for operation, work in scenario.work.items()
            if not work.heeds_cancel
        )
    if scenario.contract.create_answer is CreateAnswer.SYNCHRONOUS:
        yield from (
            (("work", operation, "outcome"), "a job that is over when its create is answered is cancelled by nobody")
            for operation, work in scenario.work.items()
            if work.outcome == "cancelled"
        )
    if len(set(scenario.modes)) < len(scenario.modes):
        yield ("modes",), "a mode is listed twice"


def _in_steps(scenario: Scenario) -> Iterator[tuple[_Location, str]]:
    before = 0.0
    submitted: set[str] = set()
    for number, step in enumerate(scenario.steps):
        where: _Location = ("steps", number, step.do)
        if step.at < before:
            yield (*where, "at"), f"goes back in time: {step.at} s after a step at {before} s; steps stand in order"
        before = max(before, step.at)
        worker = getattr(step, "worker", None)
        if worker is not None and worker not in scenario.worker_ids:
            yield (*where, "worker"), f"no such worker as {worker!r}; there are {_listed(scenario.worker_ids)}"
        if isinstance(step, Submit):
            if step.operation == DEFAULT:
                yield (*where, "operation"), f"{DEFAULT!r} is the key for all other operations' work"
            submitted.add(step.operation)
        elif isinstance(step, Arm):
            yield from _in_fault(scenario, step.fault, (*where, "fault"))
        elif isinstance(step, Cancel | Reconcile | Decide | Complete | Fail) and step.operation not in submitted:
            known = _listed(sorted(submitted)) if submitted else "nothing yet"
            yield (*where, "operation"), f"{step.operation!r} is not submitted before this step; submitted: {known}"


def _in_fault(scenario: Scenario, fault: AnyFault, where: _Location) -> Iterator[tuple[_Location, str]]:
    address = fault.at
    if address.endpoint is Endpoint.WEBHOOK and not scenario.contract.webhooks.enabled:
        yield (*where, fault.kind, "at"), "the contract has no webhooks; set contract.webhooks.enabled to true"
    if isinstance(fault, UnknownState) and fault.word in {*JobState, *scenario.contract.status.words.by_state.values()}:
        yield (
            (*where, fault.kind, "word"),
            f"{fault.word!r} is known: it is one of the contract's words, or usual for one",
        )
    if address.worker is not None and address.worker not in scenario.worker_ids:
        yield (
            (*where, fault.kind, "at"),
            f"no such worker as {address.worker!r}; there are {_listed(scenario.worker_ids)}",
        )
    if address.operation is not None and address.operation not in scenario.operations:
        yield (
            (*where, fault.kind, "at"),
            f"no step submits {address.operation!r}; submitted: {_listed(scenario.operations)}",
        )


def _listed(names: Iterator[str] | tuple[str, ...] | list[str]) -> str:
    return ", ".join(names) or "none"
