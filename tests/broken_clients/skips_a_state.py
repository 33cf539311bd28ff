"""From the create's answer the operation goes straight to observing."""

from typing import Any

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.adapters.protocol import Answer, JobReport
from reference_client.lifecycle import Evidence, LocalState
from reference_client.steps import Draft
from reference_client.workflow import Workflow
from tests.broken_clients._parts import force

SCENARIO = "happy-path"
CAUGHT_BY = "legal-transitions-only"


class Straight(Draft):
    """Writes ``observing`` wherever ``accepted`` is meant."""

    def move(self, after: LocalState, evidence: Evidence, *, cause: str, reason: str, **facts: Any) -> "Straight":
        force(self, LocalState.OBSERVING, cause=cause, reason=reason)
        return self


class Broken(Workflow):
    def accept(self, draft: Draft, answer: Answer, job: JobReport, status_path: str | None, evidence: Evidence) -> None:
        draft.__class__ = Straight
        super().accept(draft, answer, job, status_path, evidence)


def build(host: Host) -> Client:
    return build_with(host, workflow=Broken)
