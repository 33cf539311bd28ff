"""The fake provider by itself: ``jobsworth serve``. For trying a client by hand, and for a test-suite of one's own.

There is no host to kill or stop here, so a fault that needs one is refused. What happens is told as it happens; with
``--judge``, what the client sent is held against the rules that need nothing else.
"""

import asyncio
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from fake_provider.contract import Contract
from fake_provider.factlog import Logged
from fake_provider.sessions import DEFAULT_SESSION, Session, SessionTerms
from fake_provider.standalone import PREFIX, SESSION_HEADER, Standalone
from harness.report.words import describe
from harness.verdict import Verdict
from harness.wire_judgement import WireJudgement, judge_wire
from scenarios.model import Scenario

__all__ = ["Served", "serve", "sum_up", "terms_of"]

_PAGE: Final = 1_000


@dataclass(frozen=True, kw_only=True)
class Served:
    """What is to be served, and how."""

    terms: SessionTerms  # of the default session
    port: int = 0  # on the loopback interface; 0 for any that is free
    control_port: int = 0
    quiet: bool = False  # what happens is not told
    judged: bool = False


def terms_of(
    story: Scenario | None, *, contract: Contract | None, dialect: str, clock: str, webhook_url: str | None
) -> SessionTerms:
    """Return the terms of a session that plays a scenario's provider; its steps are not played.

    Args:
        story: None: a provider that does nothing out of the ordinary.
        contract: instead of the scenario's; the dialect's own if there is neither.

    Raises:
        ValueError: saying all that is wrong.
    """
    said: dict[str, Any] = {"dialect": dialect, "clock": clock, "webhook_url": webhook_url}
    if story is not None:
        said |= {"contract": story.contract, "work": story.work, "faults": story.faults, "seed": story.seed}
    if contract is not None:
        said["contract"] = contract
    try:
        return SessionTerms.model_validate(said)
    except ValidationError as error:
        wrong = [
            f"{_option(one['loc'])}{one['msg'].removeprefix('Value error, ')}"
            for one in error.errors()
            if one["type"] != "default_factory_not_called"  # that another option is wrong is said of that one
        ]
        raise ValueError("; ".join(wrong)) from None


def _option(place: tuple[int | str, ...]) -> str:
    return f"--{place[0]}: ".replace("_", "-") if place else ""


def serve(served: Served, *, say: Callable[[str], object]) -> list[WireJudgement]:
    """Serve until SIGINT or SIGTERM, then close every connection.

    Args:
        say: told each line; the first begins with the base URL, the second with that of the control API.

    Returns:
        what each session came to, in the order in which they ended; nothing unless ``judged``. Sessions that saw no
        request are left out.

    Raises:
        HostOutOfReach: a fault strikes at the client's host.
        OSError: a port is taken.
    """
    return asyncio.run(_serve(served, say))


def sum_up(judgements: Sequence[WireJudgement]) -> tuple[Verdict, str]:
    """Return what all sessions come to together, and why."""
    broken = [each.session for each in judgements if each.judgement.findings]
    crashed = [name for each in judgements for name, _ in each.judgement.crashed]
    if broken:
        return Verdict.FAIL, f"{len(broken)} of {len(judgements)} sessions broke a rule: {', '.join(broken)}"
    if crashed:
        return Verdict.UNKNOWN, f"rules crashed: {', '.join(sorted(set(crashed)))}"
    if not any(each.judgement.judged for each in judgements):
        return Verdict.UNKNOWN, "no rule had anything to judge"
    judged = {rule for each in judgements for rule in each.judgement.judged}
    return Verdict.PASS, f"{len(judgements)} sessions, {len(judged)} rules judged from the wire, none broken"


async def _serve(served: Served, say: Callable[[str], object]) -> list[WireJudgement]:
    watch = _Watch(served, say)
    with _told_to_stop() as stop:
        async with Standalone(
            served.terms, port=served.port, control_port=served.control_port, watcher=watch
        ) as standalone:
            for line in _how_to_reach(standalone, served.terms):
                say(line)
            watch.begin()
            await stop.wait()
        await watch.finish()
    return watch.judgements


def _how_to_reach(standalone: Standalone, terms: SessionTerms) -> Iterator[str]:
    base_url, control_url = standalone.base_url, standalone.control_url
    yield f"{base_url} speaks {terms.dialect}, contract {terms.contract.name}, {len(terms.faults)} faults"
    yield f"{control_url} is the control API, described at {control_url}/openapi.json"
    yield f"{base_url}{PREFIX}NAME, or the header {SESSION_HEADER}: NAME, is a session of one's own, once opened"
    if terms.webhook_url is not None:
        (secret,) = standalone.sessions.get(DEFAULT_SESSION).webhook_secrets
        yield f"webhooks go to {terms.webhook_url}, signed with {secret}"


@contextmanager
def _told_to_stop() -> Iterator[asyncio.Event]:
    """Have SIGINT and SIGTERM set an event, from before anything listens until everything is closed."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    try:
        yield stop
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


class _Watch:
    """Tells what happens in each session, and judges each at its end."""

    def __init__(self, served: Served, say: Callable[[str], object]) -> None:
        self._served = served
        self._say = say
        self._telling: set[asyncio.Task[None]] = set()
        self._may_tell = asyncio.Event()
        self.judgements: list[WireJudgement] = []

    def begin(self) -> None:
        """Begin to tell: how to reach the provider was said."""
        self._may_tell.set()

    async def finish(self) -> None:
        """Wait until all is told."""
        await asyncio.gather(*self._telling)

    def opened(self, session: Session) -> None:
        if not self._served.quiet:
            task = asyncio.create_task(self._tell(session))
            self._telling.add(task)
            task.add_done_callback(self._telling.discard)

    def ended(self, session: Session) -> None:
        if not self._served.judged or not len(session.log):
            return
        judgement = judge_wire(
            session.name,
            _read(session),
            contract=session.terms.contract,
            origin=session.base_url,
            seed=session.terms.seed,
            manual_clock=session.terms.clock == "manual",
        )
        self.judgements.append(judgement)

    async def _tell(self, session: Session) -> None:
        await self._may_tell.wait()
        where = "" if session.name == DEFAULT_SESSION else f"{session.name}: "
        async for logged in session.log.follow(0):
            sentence = describe(logged.fact)
            self._say(f"{where}{sentence.actor:<9} {sentence.text}")


def _read(session: Session) -> Iterator[Logged]:
    """Yield the whole history, never holding more than a page of what was spilled."""
    start = 0
    while page := session.log.read(start, _PAGE):
        yield from page
        start = page[-1].seq + 1
