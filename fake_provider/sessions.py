"""Several providers side by side that see nothing of each other: one for each test that shares a server."""

import asyncio
import re
import secrets
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Annotated, Any, Final, Literal, Protocol, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from fake_provider.boundary import Boundary
from fake_provider.clock import Clock, ManualClock, SystemClock
from fake_provider.contract import Contract
from fake_provider.dialects import DIALECTS
from fake_provider.engine import Attempt, Deliver, Engine
from fake_provider.factlog import FactLog
from fake_provider.facts import Endpoint
from fake_provider.faults import AnyFault, Fault
from fake_provider.presets import preset
from fake_provider.work import Work

__all__ = [
    "CLIENT",
    "DEFAULT_SESSION",
    "IDLE_S",
    "MAX_SESSIONS",
    "HostOutOfReach",
    "NoSuchSession",
    "Session",
    "SessionTerms",
    "Sessions",
    "SessionsFull",
    "Watcher",
    "refuse_host_faults",
]

CLIENT: Final = "w1"
"""What the one client of a session is called: whoever calls."""

DEFAULT_SESSION: Final = "default"
"""The session of a client that names none. It never expires."""

MAX_SESSIONS: Final = 1_000
"""Sessions at one time: more than any test run has workers, and each holds its jobs in memory."""

IDLE_S: Final = 3_600.0
"""A session nobody has used for so long is given up: its test is over, and has not cleaned up."""

_HOST_FAULTS: Final = frozenset({"clock_skewed", "kill", "stop", "write_refused"})
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class NoSuchSession(LookupError):
    """There is no session of that name, or no longer."""


class SessionsFull(RuntimeError):
    """There are as many sessions as there may be."""


class HostOutOfReach(ValueError):
    """A fault would strike at the client's host or store, which no provider can reach by itself."""


def _contract(value: object) -> object:
    return preset(value) if isinstance(value, str) else value


def _dialect(name: str) -> str:
    if name not in DIALECTS:
        raise ValueError(f"there is no dialect {name!r}; one of {', '.join(DIALECTS)}")
    return name


def _likeness(said: dict[str, Any]) -> Contract:
    return DIALECTS[said.get("dialect", "jobs")].likeness


class SessionTerms(BaseModel):
    """What one session is to be."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    dialect: Annotated[str, AfterValidator(_dialect)] = Field("jobs", description="The wire format.")
    contract: Annotated[Contract, BeforeValidator(_contract)] = Field(
        default_factory=_likeness,
        description="The name of a preset, or a contract written out; left out: the dialect's own.",
    )
    work: dict[str, Work] = Field(default_factory=dict, description="What jobs do, by operation; default for the rest.")
    faults: tuple[AnyFault, ...] = Field((), description="Armed from the beginning.")
    seed: int = Field(0, description="Equal seeds give equal ids.")
    clock: Literal["system", "manual"] = Field("system", description="manual: time passes only when told to.")
    webhook_url: str | None = Field(None, description="Where webhooks go; left out: nowhere.", pattern="^https?://")

    @model_validator(mode="after")
    def _can_be_written(self) -> Self:
        beyond = DIALECTS[self.dialect].cannot_promise(self.contract)
        if beyond is not None:
            raise ValueError(f"the dialect {self.dialect} cannot write down this contract: {beyond}")
        return self


class _NoHost:
    """The client's machine, which is out of reach. No fault asks for it: see :func:`refuse_host_faults`."""

    def kill(self, worker: str) -> None:
        raise HostOutOfReach(f"{worker} cannot be killed from here")

    def stop(self, worker: str, for_s: float | None) -> None:
        raise HostOutOfReach(f"{worker} cannot be stopped for {for_s} s from here")

    def set_clock(self, worker: str, ahead_s: float) -> None:
        raise HostOutOfReach(f"the clock of {worker} cannot be set {ahead_s} s ahead from here")

    def is_running(self, worker: str) -> bool:  # noqa: ARG002  whoever calls, runs
        return True


def refuse_host_faults(faults: Sequence[Fault]) -> None:
    """Refuse what would strike at the client's host.

    Raises:
        HostOutOfReach: naming the first such fault.
    """
    for number, fault in enumerate(faults):
        if fault.kind in _HOST_FAULTS or fault.at.endpoint is Endpoint.STORE:
            raise HostOutOfReach(f"faults[{number}]: {fault.kind} strikes at the client's host, out of reach here")


class Session:
    """One provider of its own: jobs, faults, clock, webhooks and history."""

    def __init__(self, name: str, terms: SessionTerms, *, base_url: str, deliver: Callable[[str], Deliver]) -> None:
        refuse_host_faults(terms.faults)
        self.name = name
        self.terms = terms
        self.base_url = base_url
        self.clock: Clock = SystemClock() if terms.clock == "system" else ManualClock(SystemClock().now())
        self.log = FactLog(self.clock.now)
        self.webhook_secrets = [f"whsec_{b64encode(secrets.token_bytes(24)).decode()}"]
        self.boundary = Boundary(
            terms.contract,
            dialect=terms.dialect,
            base_url=base_url,
            random=Random(terms.seed),
            record=self.log.record,
            work=terms.work,
            faults=terms.faults,
            webhook_secrets=self.webhook_secrets,
        )
        self.engine = Engine(
            self.boundary,
            self.clock,
            hosts=_NoHost(),
            deliver=deliver(terms.webhook_url) if terms.webhook_url else _nobody,
        )

    def arm(self, fault: Fault) -> int:
        """Plan one more fault and return its index; ``HostOutOfReach`` if it needs the client's host."""
        refuse_host_faults([fault])
        return self.boundary.plan.arm(fault)

    def summary(self) -> dict[str, Any]:
        """Return what is told of it."""
        plan = self.boundary.plan
        return {
            "name": self.name,
            "base_url": self.base_url,
            "contract": self.terms.contract.name,
            "dialect": self.terms.dialect,
            "clock": self.terms.clock,
            "now": self.clock.now(),
            "facts": len(self.log),
            "faults_planned": plan.planned,
            "faults_struck": plan.struck,
            "webhook_secrets": self.webhook_secrets,
        }


class Watcher(Protocol):
    """Told of sessions as they come and go."""

    def opened(self, session: Session) -> None:
        """A session has begun; nothing has happened in it yet."""
        ...

    def ended(self, session: Session) -> None:
        """A session is at its end. Its history is complete, and can be read until this returns."""
        ...


class _Nobody:
    def opened(self, session: Session) -> None:
        """Nobody is told."""

    def ended(self, session: Session) -> None:
        """Nobody is told."""


async def _nobody(attempt: Attempt) -> int | None:  # noqa: ARG001  nobody takes it
    return None


class Sessions:
    """All sessions of one server."""

    def __init__(
        self,
        *,
        default: SessionTerms,
        base_url: Callable[[str], str],
        deliver: Callable[[str], Deliver],
        idle_s: float = IDLE_S,
        watcher: Watcher | None = None,
    ) -> None:
        """Args:
        default: the terms of the session that is always there.
        base_url: says where a session of that name is to be called.
        deliver: makes what posts webhooks to that URL.
        idle_s: how long a session may go unused.
        watcher: told of each session.
        """
        self._default = default
        self._base_url = base_url
        self._deliver = deliver
        self._idle_s = idle_s
        self._watcher: Watcher = watcher or _Nobody()
        self._sessions: dict[str, Session] = {}
        self._used: dict[str, float] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        """Begin, on the running event loop, with the default session."""
        self._loop = asyncio.get_running_loop()
        self._open(DEFAULT_SESSION, self._default)

    async def close(self) -> None:
        while self._sessions:
            await self._end(self._sessions.popitem()[1])

    def _open(self, name: str, terms: SessionTerms) -> Session:
        session = Session(name, terms, base_url=self._base_url(name), deliver=self._deliver)
        session.engine.start()
        self._sessions[name] = session
        self._touch(name)
        self._watcher.opened(session)
        return session

    async def _end(self, session: Session) -> None:
        await session.engine.close()
        self._watcher.ended(session)
        session.log.close()

    def _touch(self, name: str) -> None:
        if self._loop is not None:
            self._used[name] = self._loop.time()

    async def create(self, terms: SessionTerms, name: str | None = None) -> Session:
        """Open a session.

        Args:
            name: left out: one is made.

        Raises:
            ValueError: the name is taken or is none, or the terms contradict themselves.
            SessionsFull: there are too many.
        """
        await self._expire()
        if name is not None and not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no name for a session: up to 64 letters, digits, dots, dashes, underscores")
        if name in self._sessions:
            raise ValueError(f"there is a session {name!r} already")
        if len(self._sessions) >= MAX_SESSIONS:
            raise SessionsFull(f"there are {MAX_SESSIONS} sessions already: delete those that are done")
        return self._open(name or f"s-{secrets.token_hex(8)}", terms)

    def get(self, name: str) -> Session:
        """Return the session of that name, which counts as using it.

        Raises:
            NoSuchSession: if there is none.
        """
        session = self._sessions.get(name)
        if session is None:
            raise NoSuchSession(f"there is no session {name!r}, or no longer")
        self._touch(name)
        return session

    async def delete(self, name: str) -> None:
        """End a session; the default one begins anew, for it is always there. ``NoSuchSession`` if there is none."""
        session = self.get(name)
        if name == DEFAULT_SESSION:
            await self.reset(name)
            return
        del self._sessions[name], self._used[name]
        await self._end(session)

    async def reset(self, name: str) -> Session:
        """Begin a session anew, on the same terms. ``NoSuchSession`` if there is none."""
        old = self.get(name)
        new = self._open(name, old.terms)  # first, so that no request meets a session at its end
        await self._end(old)
        return new

    async def _expire(self) -> None:
        """Give up the sessions nobody has used for long."""
        if self._loop is None:
            return
        oldest = self._loop.time() - self._idle_s
        for name in [name for name, used in self._used.items() if used < oldest and name != DEFAULT_SESSION]:
            del self._used[name]
            await self._end(self._sessions.pop(name))

    def __iter__(self) -> Iterator[Session]:
        return iter(self._sessions.values())
