"""Putting a client together from its parts: the one place that knows which part goes where."""

from collections.abc import Mapping
from pathlib import Path
from secrets import SystemRandom
from typing import Any, Final

import msgspec

from reference_client.adapters.jobs import JobsAdapter
from reference_client.caller import Caller
from reference_client.client import ReferenceClient
from reference_client.clock import Clock, SystemClock
from reference_client.config import ConfigError, Terms, Timing
from reference_client.credentials import CredentialSource
from reference_client.files import ResultFiles
from reference_client.schema import ResultSchema
from reference_client.stores.protocol import OperationStore
from reference_client.webhooks import EventIntake, Verifier
from reference_client.worker import Worker
from reference_client.workflow import Workflow

__all__ = ["ADAPTERS", "Assembly", "assemble", "workflow_for"]

ADAPTERS: Final = {"jobs": JobsAdapter}
"""Every adapter there is, by the name that a record holds."""


class Assembly(msgspec.Struct, frozen=True, kw_only=True):
    """A client, and the parts that its surroundings still need."""

    client: ReferenceClient
    caller: Caller
    intake: EventIntake
    store: OperationStore

    async def close(self) -> None:
        """Close connections and store."""
        await self.caller.close()
        await self.store.close()


def workflow_for(
    adapter: str, *, terms: Terms, timing: Timing, result_schema: Mapping[str, Any] | None = None
) -> Workflow:
    """Return the workflow of one provider, with randomness from the system (W2.1).

    Raises:
        ConfigError: if there is no such adapter, or the schema is none.
    """
    make = ADAPTERS.get(adapter)
    if make is None:
        raise ConfigError(f"adapter: {adapter!r} is none; one of {', '.join(sorted(ADAPTERS))}")
    workflow = Workflow(make(terms), terms=terms, timing=timing, random=SystemRandom())
    if result_schema is not None:
        workflow.result_schema = ResultSchema(result_schema)
    return workflow


def assemble(
    *,
    worker: str,
    base_url: str,
    store: OperationStore,
    credentials: CredentialSource,
    adapter: str = "jobs",
    terms: Terms | None = None,
    timing: Timing | None = None,
    result_schema: Mapping[str, Any] | None = None,
    webhook_secrets: tuple[str, ...] = (),
    results: Path | None = None,
    results_over_bytes: int = Workflow.inline_limit_bytes,
    clock: Clock | None = None,
    idle_s: float | None = None,
) -> Assembly:
    """Put a client together.

    Args:
        worker: a name that no other living worker has.
        base_url: the provider's.
        store: where operations are kept.
        credentials: for ``base_url``'s origin only.
        adapter: a key of :data:`ADAPTERS`.
        terms: what the provider promises; default: a careful provider.
        timing: the client's clocks.
        result_schema: a JSON Schema that every result must meet.
        webhook_secrets: at most two at a time, newest first.
        results: a directory for large results; None: all results stay in the store.
        results_over_bytes: what is large.
        clock: default: the machine's.
        idle_s: how often to look for work that other processes left in the store.

    Raises:
        ConfigError: for an unknown adapter, or a schema that is none.
        WebhookSecretError: for a secret that is none.
    """
    terms = terms or Terms()
    timing = timing or Timing()
    clock = clock or SystemClock()
    workflow = workflow_for(adapter, terms=terms, timing=timing, result_schema=result_schema)
    workflow.inline_limit_bytes = results_over_bytes
    caller = Caller(base_url=base_url, credentials=credentials, timing=timing)
    running = Worker(
        worker,
        store=store,
        workflow=workflow,
        caller=caller,
        clock=clock,
        timing=timing,
        files=None if results is None else ResultFiles(results),
        idle_s=idle_s,
    )
    intake = EventIntake(
        verifier=Verifier(webhook_secrets),
        store=store,
        workflow=workflow,
        clock=clock,
        actor=worker,
        wake=running.wake,
    )
    return Assembly(client=ReferenceClient(running, target=base_url), caller=caller, intake=intake, store=store)
