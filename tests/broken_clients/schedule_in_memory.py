"""The next poll time is kept in memory: whoever starts afresh polls at once."""

from collections.abc import Sequence
from typing import Any

import msgspec

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.operation import Operation
from reference_client.steps import Step
from reference_client.stores.protocol import Lease
from reference_client.workflow import Action, Workflow
from tests.broken_clients._parts import Store

SCENARIO = "restart-between-polls"
CAUGHT_BY = "restart-continues-schedule"


class Hasty(Store):
    """Everything is due soon, as far as the store knows."""

    async def release(
        self, lease: Lease, step: Step | None, *, due_at: float | None, taken: Sequence[int] = ()
    ) -> None:
        if due_at is not None:
            due_at = min(due_at, await self.now() + 0.1)
        await self._inner.release(lease, step, due_at=due_at, taken=taken)


class Broken(Workflow):
    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self._known: set[str] = set()

    def next_action(self, operation: Operation, now: float) -> Action:
        if operation.operation_id not in self._known:
            self._known.add(operation.operation_id)
            operation = msgspec.structs.replace(operation, next_attempt_at=now)
        return super().next_action(operation, now)


def build(host: Host) -> Client:
    return build_with(host, workflow=Broken, store=Hasty)
