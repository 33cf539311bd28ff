"""What the tests of the reference client share: a workflow, an answer, an operation that has come to a given point."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from reference_client.adapters.jobs import JobsAdapter
from reference_client.adapters.protocol import Answer, NoAnswer
from reference_client.config import Terms, Timing
from reference_client.operation import Command, HistoryEntry, Operation
from reference_client.steps import Step
from reference_client.workflow import Collect, Send, Settle, Workflow

TARGET = "http://provider.test"
TIMING = Timing(
    request_timeout_s=1,
    poll_first_s=0.5,
    poll_cap_s=2,
    lease_s=2,
    create_deadline_s=10,
    result_deadline_s=20,
    cancel_deadline_s=5,
)


class Say:
    """What a provider may answer, in short."""

    @staticmethod
    def job(status: str = "running", job_id: str = "job_1", **more: Any) -> dict[str, Any]:
        return {"id": job_id, "status": status, "client_reference": "op-1", **more}

    @staticmethod
    def answer(status: int, body: Any = None, *, at: float = 0.0, **headers: str) -> Answer:
        """An answer; the body is JSON unless it is bytes; header names with underscores for hyphens."""
        kind = "application/json" if status < 400 else "application/problem+json"
        return Answer(
            url=f"{TARGET}/v1/jobs",
            status=status,
            headers={"content-type": kind} | {name.replace("_", "-"): value for name, value in headers.items()},
            body=body if isinstance(body, bytes) else json.dumps(body).encode(),
            received_at=at,
        )

    @classmethod
    def problem(cls, status: int, name: str = "whatever", *, at: float = 0.0, **headers: str) -> Answer:
        body = {"type": f"https://jobsworth.test/problems/{name}", "status": status, "detail": "because"}
        return cls.answer(status, body, at=at, **headers)

    @classmethod
    def status(cls, status: str, *, at: float = 0.0, job_id: str = "job_1", **more: Any) -> Answer:
        return cls.answer(200, cls.job(status, job_id, **more), at=at)

    @staticmethod
    def nothing(error: str = "timeout") -> NoAnswer:
        return NoAnswer(error=error, detail="nothing came", received_at=0.0, sent=error != "connect_failed")


class Story:
    """One operation, driven by hand: what the worker would do, without a store, a network or a clock."""

    def __init__(self, workflow: Workflow) -> None:
        self.workflow = workflow
        self.entries: list[HistoryEntry] = []
        self.operation = self.keep(
            workflow.open("op-1", {"kind": "report"}, target=TARGET, authorised_by="ann", actor="w1", now=0.0)
        )

    def keep(self, step: Step) -> Operation:
        self.operation = step.operation
        self.entries += step.entries
        return self.operation

    def next(self, now: float) -> Any:
        return self.workflow.next_action(self.operation, now)

    def call(self, what: Answer | NoAnswer, now: float) -> Operation:
        """Do the call that is due at ``now``, and let it be answered by ``what``."""
        action = self.settle(now)
        assert isinstance(action, Send), action
        self.keep(self.workflow.begin(self.operation, action, worker="w1", fence=1, now=now))
        return self.keep(self.workflow.conclude(self.operation, what, actor="w1", now=now))

    def settle(self, now: float) -> Any:
        """Take all moves that need no call; return what is to be done then."""
        for _ in range(5):
            action = self.next(now)
            if isinstance(action, Settle):
                self.keep(self.workflow.settle(self.operation, action, actor="w1", now=now))
            elif isinstance(action, Collect):
                self.keep(self.workflow.collect(self.operation, actor="w1", now=now))
            else:
                return action
        raise AssertionError("it does not come to rest")

    def told(self, command: Command, now: float) -> Operation:
        self.entries.append(self.workflow.given(self.operation, command, actor="cli", now=now))
        return self.keep(self.workflow.take_up(self.operation, command, actor="w1", now=now))

    def accepted(self, now: float = 0.0) -> Operation:
        """Create the job, and begin to observe it."""
        self.call(Say.answer(202, Say.job("queued"), at=now), now)
        self.settle(now)
        return self.operation


@pytest.fixture
def say() -> type[Say]:
    return Say


@pytest.fixture
def make_workflow() -> Callable[..., Workflow]:
    def make(*, workflow: type[Workflow] = Workflow, timing: Timing = TIMING, **contract: Any) -> Workflow:
        terms = Terms.read(contract)
        return workflow(JobsAdapter(terms), terms=terms, timing=timing, random=Random(1))

    return make


@pytest.fixture
def make_story(make_workflow: Callable[..., Workflow]) -> Callable[..., Story]:
    def make(**contract: Any) -> Story:
        return Story(make_workflow(**contract))

    return make


@pytest.fixture
def story(make_story: Callable[..., Story]) -> Story:
    return make_story()


class ManualClock:
    """A clock that moves when somebody sleeps, and not otherwise."""

    def __init__(self, now: float = 1_767_225_600.0) -> None:
        self.time = now

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.time += seconds
        await asyncio.sleep(0)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()
