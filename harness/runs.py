"""What a run is made of, in virtual time and in real time alike."""

import shlex
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Final

from fake_provider.boundary import Boundary
from harness.course import Course
from harness.history import History
from harness.stage import Terms
from harness.subjects.in_process import BASE_URL
from harness.subjects.resolve import Subject
from harness.verdict import Outcome
from scenarios.model import Scenario

__all__ = ["INTRODUCTION", "REHEARSAL", "Job", "Result", "boundary_of", "follow", "terms_of"]

INTRODUCTION: Final = Scenario.model_validate(
    {"name": "introduction", "summary": "None.", "steps": [{"at": 0, "do": "wait"}]}
)
"""In which a client only says what it can do."""

REHEARSAL: Final = Scenario.model_validate(
    {"name": "rehearsal", "summary": "None.", "steps": [{"at": 0, "do": "submit", "operation": "op-1"}]}
)
"""In which a client shows what it does of itself."""


@dataclass(frozen=True)
class Result:
    """What a run came to, the history that proves it, and what each worker's processes logged."""

    outcome: Outcome
    history: History
    logs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Job:
    """One run to be made. ``source`` is how a person names the scenario: its name in the catalogue, or a path."""

    scenario: Scenario
    subject: Subject
    mode: str
    seed: int | None = None
    source: str | None = None
    edition: int | None = None  # of the rules it is judged by; all of them if left out

    @property
    def effective_seed(self) -> int:
        """The command line's seed, or the scenario's own."""
        return self.scenario.seed if self.seed is None else self.seed

    @property
    def reproduce(self) -> str:
        """The command line that makes this run once more."""
        words = ["jobsworth", "replay", self.source or self.scenario.name]
        if self.subject.command is None:
            words.append(self.subject.name)
        words += ["--mode", self.mode, "--seed", str(self.effective_seed)]
        if self.edition is not None:
            words += ["--rules", str(self.edition)]
        if self.subject.factory is None and self.subject.command is not None:
            words += ["--one-shot"] * self.subject.one_shot + ["--", *self.subject.command]
        return shlex.join(words)


async def follow(course: Course, *, start_s: float | None = None) -> None:
    """Apply every step at its time.

    Args:
        start_s: how long a command may take to come up, where each one starts a program.
    """
    began = course.now()  # in real time the workers took a while to come up
    for step in course.scenario.steps:
        await course.advance_to(began + step.at)
        await course.apply(step)
        if start_s is not None:
            began += await course.await_start(start_s)
    await course.finish()


def terms_of(scenario: Scenario, seed: int) -> Terms:
    """Return what the clients of a run are told, with credentials drawn from ``seed``."""
    draw = Random(f"{seed}:secrets")
    secret = b64encode(draw.randbytes(24)).decode()
    return Terms(
        contract=scenario.contract.model_dump(mode="json"),
        timing=scenario.timing.model_dump(mode="json"),
        authorization=f"Bearer sk-canary-{draw.randbytes(16).hex()}",
        webhook_secrets=(f"whsec_{secret}",),
        seed=seed,
    )


def boundary_of(scenario: Scenario, seed: int, terms: Terms, history: History, dialect: str = "jobs") -> Boundary:
    """Return the provider of a run, which draws from ``seed`` and writes what happens into ``history``.

    Raises:
        ValueError: if the dialect has no words for the scenario's contract.
    """
    return Boundary(
        scenario.contract,
        dialect=dialect,
        base_url=BASE_URL,
        random=Random(f"{seed}:provider"),
        record=history.record,
        work=scenario.work,
        faults=scenario.faults,
        webhook_secrets=terms.webhook_secrets,
        authorization=terms.authorization,
    )
