"""The command line of the reference client: ``python -m reference_client --help``."""

import asyncio
import json
import logging
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TextIO, TypeVar

import click

from reference_client import audit
from reference_client.adapters.protocol import RequestError
from reference_client.commanding import CommandRefused
from reference_client.config import ConfigError
from reference_client.creating import OperationConflict
from reference_client.credentials import CredentialError
from reference_client.lifecycle import LocalState
from reference_client.operation import Command, Decision, HistoryEntry, Operation, Reconcile, Stop
from reference_client.settings import Settings
from reference_client.stores.protocol import OperationStore, StoreError, StoreRefused
from reference_client.story import escalation_packet, shown, story
from reference_client.webhooks import WebhookSecretError

if TYPE_CHECKING:  # it takes half of the time that starting takes, and few commands want it
    from reference_client.assembly import Assembly

P = ParamSpec("P")
T = TypeVar("T")

_REFUSALS: Final = (
    OperationConflict,
    RequestError,
    CommandRefused,
    ConfigError,
    CredentialError,
    StoreError,
    WebhookSecretError,
    audit.AuditError,
)

_LOOK_S: Final = 0.2
"""How often ``work --until-rest`` looks whether everything rests."""

_IDLE_S: Final = 1.0
"""How often a worker looks for what other processes left in the store: a stop command should not wait for long."""


def _asynchronous(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """Run a command's coroutine, and turn each refusal into one clear line."""

    @wraps(function)
    def run(*args: P.args, **options: P.kwargs) -> T:
        try:
            return asyncio.run(function(*args, **options))
        except _REFUSALS as error:
            raise click.ClickException(str(error)) from None
        except OSError as error:
            raise click.ClickException(f"{error.filename or 'system'}: {error.strerror or error}") from None

    return run


def _actor() -> str:
    """Name this process in histories and leases: unique among living processes."""
    return f"{socket.gethostname()}:{os.getpid()}"


def _operator() -> str:
    return os.environ.get("USER") or os.environ.get("LOGNAME") or f"uid {os.getuid()}"


_settings = click.option(
    "--settings",
    "path",
    type=click.Path(path_type=Path, dir_okay=False),
    default="reference_client.json",
    envvar="REFERENCE_CLIENT_SETTINGS",
    show_default=True,
    help="The settings file (JSON).",
)
_who = click.option("--who", default=_operator, show_default="your login name", help="Who says so; it is recorded.")
_why = click.option("--why", required=True, help="Why; it is recorded.")
_operation = click.argument("operation")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--verbose", is_flag=True, help="Log to standard error what is done.")
def main(*, verbose: bool) -> None:
    """Run long jobs at a provider, so that none is created twice, lost, or wrongly called cancelled.

    The settings file says where the provider is and what it promises. The least that it can hold is
    {"base_url": "https://…", "credential": "env:JOBS_AUTHORIZATION"}.
    """
    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    # It logs addresses, and a look-up's holds the idempotency token.
    logging.getLogger("httpx2").setLevel(logging.WARNING)


@asynccontextmanager
async def _opened(settings: Settings) -> AsyncIterator[OperationStore]:
    """The store that the settings name, closed in the end."""
    from reference_client.stores.opening import open_store

    store = open_store(settings.store)
    try:
        yield store
    finally:
        await store.close()


async def _assembled(settings: Settings, **more: Any) -> "Assembly":
    """Return the client that the settings describe; ``more``: see :func:`reference_client.assembly.assemble`."""
    from reference_client.assembly import assemble
    from reference_client.credentials import credential_from
    from reference_client.stores.opening import open_store

    kept = settings.webhooks.secrets if settings.webhooks is not None else ()
    secrets = [await credential_from(each).authorization() for each in kept]
    return assemble(
        worker=_actor(),
        base_url=settings.base_url,
        store=open_store(settings.store),
        credentials=credential_from(settings.credential),
        adapter=settings.adapter,
        terms=settings.terms(),
        timing=settings.timing,
        webhook_secrets=tuple(secrets),
        **more,
    )


@main.command()
@_operation
@click.option(
    "--body", type=click.File("r", encoding="utf-8"), default="-", help="The request, as JSON; - for standard input."
)
@click.option("--authorised-by", required=True, help="Whose approval covers this; it is recorded.")
@_settings
@_asynchronous
async def submit(operation: str, body: TextIO, authorised_by: str, path: Path) -> None:
    """Record OPERATION, to be worked on. The same request once more changes nothing; another one is refused."""
    from reference_client.assembly import workflow_for

    settings = Settings.load(path)
    try:
        request = json.load(body)
    except ValueError as error:
        raise click.ClickException(f"the body is no JSON: {error}") from None
    if not isinstance(request, dict):
        raise click.ClickException("the body must be a JSON object")
    workflow = workflow_for(settings.adapter, terms=settings.terms(), timing=settings.timing)
    async with _opened(settings) as store:
        await _refuse_strangers(store, settings)
        step = workflow.open(
            operation,
            request,
            target=settings.base_url,
            authorised_by=authorised_by,
            actor=_actor(),
            now=await store.now(),
        )
        known = await store.add(step)
        if known is not step.operation:
            workflow.same_request(known, request)
        click.echo(f"{operation}: {known.state}" + ("" if known is step.operation else " (on record already)"))


@main.command()
@click.argument("operations", nargs=-1)
@click.option(
    "--until-rest", is_flag=True, help="End when OPERATIONS (default: all) rest; else serve until told to stop."
)
@_settings
@_asynchronous
async def work(operations: tuple[str, ...], until_rest: bool, path: Path) -> None:
    """Work on what is due, until SIGTERM or SIGINT; then finish what is in hand and end.

    With --until-rest, exit status 1 says that an operation rests without having succeeded.
    """
    settings = Settings.load(path)
    webhooks = settings.webhooks
    async with AsyncExitStack() as stack:
        assembly = await _assembled(
            settings,
            result_schema=settings.result_schema,
            results=None if settings.results is None else Path(settings.results),
            results_over_bytes=settings.results_over_bytes,
            idle_s=_IDLE_S,
        )
        stack.push_async_callback(assembly.close)
        await _refuse_strangers(assembly.store, settings)
        for operation in operations:
            await assembly.store.load(operation)  # an unknown one is refused before anything starts
        if webhooks is not None:
            from reference_client.receiver import WebhookServer  # half of the time that starting takes

            server = WebhookServer(assembly.intake.take, host=webhooks.host, port=webhooks.port)
            await stack.enter_async_context(server)
            click.echo(f"webhooks: {server.url}", err=True)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, assembly.client.stop)
        working = asyncio.create_task(assembly.client.run())
        if until_rest:
            while not working.done() and not await _all_rest(assembly.store, operations):
                await asyncio.wait({working}, timeout=_LOOK_S)
            assembly.client.stop()
        await working
        if until_rest:
            states = {each.operation_id: each.state for each in await _chosen(assembly.store, operations)}
            for name, state in states.items():
                click.echo(f"{name}: {state}")
            if any(state is not LocalState.SUCCEEDED for state in states.values()):
                sys.exit(1)


async def _refuse_strangers(store: OperationStore, settings: Settings) -> None:
    """Keep each store to one provider: a worker must never send one provider's work to another.

    Raises:
        ConfigError: if the store holds an operation for another provider.
    """
    for each in await store.operations():
        if (each.adapter, each.target) != (settings.adapter, settings.base_url):
            raise ConfigError(
                f"the store holds {each.operation_id} for {each.adapter} at {each.target}, and the settings say "
                f"{settings.adapter} at {settings.base_url}; use one store for each provider"
            )


async def _chosen(store: OperationStore, operations: tuple[str, ...]) -> list[Operation]:
    return [await store.load(each) for each in operations] if operations else list(await store.operations())


async def _all_rest(store: OperationStore, operations: tuple[str, ...]) -> bool:
    """Tell whether nothing is left to be done. A store that refuses to say is asked again."""
    try:
        if not operations:
            return await store.due_in_s() is None
        return all(each.at_rest for each in await _chosen(store, operations))
    except StoreRefused:
        return False


@main.command()
@click.argument("operation", required=False)
@click.option("--json", "as_json", is_flag=True, help="Record and history as one JSON object.")
@_settings
@_asynchronous
async def show(operation: str | None, as_json: bool, path: Path) -> None:
    """Tell what happened to OPERATION, from its history alone; without OPERATION, list all."""
    import msgspec

    async with _opened(Settings.load(path)) as store:
        if operation is None:
            everything = await store.operations()
            if as_json:
                click.echo(json.dumps([shown(each) for each in everything], indent=2))
            else:
                for each in everything:
                    click.echo(
                        f"{each.operation_id}: {each.state}" + (f" ({each.explanation})" if each.explanation else "")
                    )
            return
        record, history = await store.load(operation), await store.history(operation)
        if as_json:
            click.echo(json.dumps({"record": shown(record), "history": msgspec.to_builtins(list(history))}, indent=2))
        else:
            click.echo("\n".join(story(record, history)))


@main.command()
@_operation
@_who
@_why
@_settings
@_asynchronous
async def cancel(operation: str, who: str, why: str, path: Path) -> None:
    """Ask for OPERATION to be stopped. The intent is recorded; the worker makes the call."""
    await _give(path, operation, Stop(who=who, why=why))


@main.command()
@_operation
@_who
@_why
@_settings
@_asynchronous
async def reconcile(operation: str, who: str, why: str, path: Path) -> None:
    """Ask for OPERATION, which rests, to be looked at once more."""
    await _give(path, operation, Reconcile(who=who, why=why))


@main.command()
@_operation
@click.option(
    "--state",
    type=click.Choice([state.value for state in LocalState if state is not LocalState.HUMAN_DECISION_REQUIRED]),
    required=True,
    help="Where the operation goes on from.",
)
@click.option("--job", help="The job that answers for the operation, if you found it.")
@_who
@_why
@_settings
@_asynchronous
async def decide(operation: str, state: str, job: str | None, who: str, why: str, path: Path) -> None:
    """Decide what becomes of OPERATION, which is in human_decision_required."""
    await _give(path, operation, Decision(who=who, why=why, state=LocalState(state), remote_job_id=job))


async def _give(path: Path, operation_id: str, command: Command) -> None:
    from reference_client.assembly import workflow_for

    settings = Settings.load(path)
    workflow = workflow_for(settings.adapter, terms=settings.terms(), timing=settings.timing)

    def entry(operation: Operation, now: float) -> HistoryEntry:
        workflow.check_command(operation, command)
        return workflow.given(operation, command, actor=_actor(), now=now)

    async with _opened(settings) as store:
        given = await store.give(operation_id, command, entry)
        click.echo(f"{operation_id}: recorded while {given.after}")


@main.command()
@_operation
@_settings
@_asynchronous
async def escalate(operation: str, path: Path) -> None:
    """Print the escalation packet for OPERATION: what the provider's support needs, as JSON."""
    async with _opened(Settings.load(path)) as store:
        packet = escalation_packet(await store.load(operation), await store.history(operation))
        click.echo(json.dumps(packet, indent=2))


@main.command()
@_settings
@_asynchronous
async def webhooks(path: Path) -> None:
    """Receive webhooks without working: keep them for whoever works on the store. Until SIGTERM or SIGINT."""
    from reference_client.receiver import WebhookServer

    settings = Settings.load(path)
    if settings.webhooks is None:
        raise ConfigError(f"{path}: webhooks: is not there; it says where to listen, and which secrets to verify with")
    async with AsyncExitStack() as stack:
        assembly = await _assembled(settings)
        stack.push_async_callback(assembly.close)
        server = WebhookServer(assembly.intake.take, host=settings.webhooks.host, port=settings.webhooks.port)
        await stack.enter_async_context(server)
        click.echo(f"webhooks: {server.url}")
        told = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, told.set)
        await told.wait()


@main.group("audit")
def audit_group() -> None:
    """The tamper-evident trail: whether anyone edited the history afterwards."""


@audit_group.command("head")
@_settings
@_asynchronous
async def audit_head(path: Path) -> None:
    """Print the head of the trail. Keep it outside: with it, a later `audit verify` also finds truncation."""
    async with _opened(Settings.load(path)) as store:
        click.echo(str(await store.head()))


@audit_group.command("verify")
@click.option("--anchor", multiple=True, help="A head that `audit head` printed earlier. May be given several times.")
@_settings
@_asynchronous
async def audit_verify(anchor: tuple[str, ...], path: Path) -> None:
    """Go through the whole trail. Exit status 1 names the first bad entry."""
    anchors = [audit.Head.parse(each) for each in anchor]
    async with _opened(Settings.load(path)) as store:
        verdict = audit.verify(await store.links(), standing=await store.standing(), anchors=anchors)
    if verdict.problem is not None:
        click.echo(f"entry {verdict.entry}: {verdict.problem}", err=True)
        sys.exit(1)
    click.echo(f"{verdict.entries} entries, unbroken; head {verdict.head}")
    if not anchors:
        click.echo(
            "no head from outside was given: a trail that was cut off or rewritten whole would not be noticed", err=True
        )


@main.command()
@_asynchronous
async def subject() -> None:
    """Speak the session protocol of the test harness, on standard input and output."""
    from reference_client.subject import serve

    await serve()


if __name__ == "__main__":
    main(prog_name="python -m reference_client")
