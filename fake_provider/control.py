"""The control API: steer sessions and read what happened in them, over HTTP on a loopback port of its own.

Each call is one entry in :data:`CALLS`, from which both the routes and the OpenAPI document are made. Errors are
problem details (RFC 9457). Nothing here is part of any provider's API; a client under test never sees this port.
"""

from collections.abc import Awaitable, Callable, Collection
from http import HTTPStatus
from typing import Any, Final, TypeVar

import msgspec
from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from fake_provider.books import ControlError
from fake_provider.clock import ManualClock
from fake_provider.facts import FaultsHealed
from fake_provider.faults import AnyFault
from fake_provider.openapi import Described, document
from fake_provider.server import BACKLOG, CLOSING_S, LOGGER, LOOPBACK, problem
from fake_provider.sessions import HostOutOfReach, NoSuchSession, Session, Sessions, SessionsFull, SessionTerms
from fake_provider.wire import MAX_BODY_BYTES

__all__ = [
    "CALLS",
    "MAX_ADVANCE_S",
    "MAX_PAGE",
    "Advance",
    "Call",
    "Control",
    "Failure",
    "NewSession",
    "Page",
    "Since",
]

MAX_PAGE: Final = 1_000
"""Facts in one answer; the rest is on the next page."""

MAX_ADVANCE_S: Final = 10 * 365 * 86_400.0
"""Ten years at a time: beyond any deadline, key lifetime or retry schedule, and far from what a time can hold."""

_SESSIONS: Final = web.AppKey("sessions", Sessions)
_URL: Final = web.AppKey("url", list[str])  # one: where this API is, known once its port is

M = TypeVar("M", bound=BaseModel)


class NewSession(SessionTerms):
    """A session to be opened."""

    name: str | None = Field(None, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", description="Left out: one is made.")


class Advance(BaseModel):
    """How far a manual clock is to move."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    advance_s: float = Field(gt=0, le=MAX_ADVANCE_S)


class Failure(BaseModel):
    """Why a job is to fail."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    error: str | None = None


class Page(BaseModel):
    """Which facts are wanted."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    after: int = Field(-1, ge=-1, le=2**53, description="The number of the last fact that is not wanted any more.")
    limit: int = Field(MAX_PAGE, ge=1, le=MAX_PAGE)


class Since(BaseModel):
    """From where on a stream is wanted."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    after: int = Field(-1, ge=-1, le=2**53)


class _Refusal(Exception):
    def __init__(self, status: HTTPStatus, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


def _json(value: Any, status: HTTPStatus = HTTPStatus.OK) -> web.Response:
    return web.Response(status=status, body=msgspec.json.encode(value), content_type="application/json")


def _explain(error: ValidationError, valid: Collection[str] = ()) -> str:
    """Return every complaint, each with its place, and with the ``valid`` keys if there is no such one."""
    told = []
    for one in error.errors(include_url=False, include_context=False):
        if one["type"] == "default_factory_not_called":
            continue  # that another key is wrong is said of that one
        said = one["msg"].removeprefix("Value error, ")
        if one["type"] == "extra_forbidden":
            said = "there is no such key" + (f"; one of {', '.join(valid)}" if len(one["loc"]) == 1 and valid else "")
        told.append(f"{'.'.join(str(part) for part in one['loc']) or 'body'}: {said}")
    return "; ".join(told)


async def _body(request: web.Request, model: type[M]) -> M:
    """Read and validate a body; an empty one stands for ``{}``."""
    data = await request.read()
    try:
        return model.model_validate_json(data or b"{}")
    except ValidationError as error:
        raise _Refusal(HTTPStatus.UNPROCESSABLE_ENTITY, _explain(error, model.model_fields)) from None


def _query(request: web.Request, model: type[M]) -> M:
    try:
        return model.model_validate(dict(request.query))
    except ValidationError as error:
        raise _Refusal(HTTPStatus.UNPROCESSABLE_ENTITY, _explain(error, model.model_fields)) from None


def _session(request: web.Request) -> Session:
    return request.app[_SESSIONS].get(request.match_info["session"])


# -- the calls


async def _list(request: web.Request) -> web.StreamResponse:
    return _json({"sessions": [session.summary() for session in request.app[_SESSIONS]]})


async def _open(request: web.Request) -> web.StreamResponse:
    terms = await _body(request, NewSession)
    try:
        session = await request.app[_SESSIONS].create(terms, terms.name)
    except HostOutOfReach as error:
        raise _Refusal(HTTPStatus.UNPROCESSABLE_ENTITY, str(error)) from None
    except ValueError as error:
        raise _Refusal(HTTPStatus.CONFLICT, str(error)) from None
    return _json(session.summary(), HTTPStatus.CREATED)


async def _show(request: web.Request) -> web.StreamResponse:
    return _json(_session(request).summary())


async def _delete(request: web.Request) -> web.StreamResponse:
    await request.app[_SESSIONS].delete(request.match_info["session"])
    return web.Response(status=HTTPStatus.NO_CONTENT)


async def _reset(request: web.Request) -> web.StreamResponse:
    session = await request.app[_SESSIONS].reset(request.match_info["session"])
    return _json(session.summary())


async def _faults(request: web.Request) -> web.StreamResponse:
    plan = _session(request).boundary.plan
    waiting = {index for index, _ in plan.unstruck()}
    faults = [
        {
            **plan[index].model_dump(mode="json"),
            "fault": index,
            "armed": plan.is_armed(index),
            "struck": index not in waiting,
        }
        for index in range(plan.planned)
    ]
    return _json({"faults": faults})


async def _arm(request: web.Request) -> web.StreamResponse:
    session = _session(request)
    try:
        fault = _FAULT.validate_json(await request.read())
        index = session.arm(fault)
    except ValidationError as error:
        raise _Refusal(HTTPStatus.UNPROCESSABLE_ENTITY, _explain(error)) from None
    except ValueError as error:
        raise _Refusal(HTTPStatus.UNPROCESSABLE_ENTITY, str(error)) from None
    return _json({"fault": index}, HTTPStatus.CREATED)


async def _heal(request: web.Request) -> web.StreamResponse:
    plan = _session(request).boundary.plan
    plan.heal()
    return _json(FaultsHealed(struck=plan.struck, planned=plan.planned))


async def _clock(request: web.Request) -> web.StreamResponse:
    session = _session(request)
    return _json({"clock": session.terms.clock, "now": session.clock.now()})


async def _advance(request: web.Request) -> web.StreamResponse:
    session = _session(request)
    step = await _body(request, Advance)
    if not isinstance(session.clock, ManualClock):
        raise _Refusal(HTTPStatus.CONFLICT, "this session has the system's clock: open one with clock: manual")
    await session.engine.advance(session.clock, step.advance_s)
    return _json({"clock": session.terms.clock, "now": session.clock.now()})


async def _complete(request: web.Request) -> web.StreamResponse:
    session = _session(request)
    return _steered(lambda: session.boundary.complete(request.match_info["operation"], session.clock.now()))


async def _fail(request: web.Request) -> web.StreamResponse:
    session = _session(request)
    error = (await _body(request, Failure)).error
    return _steered(lambda: session.boundary.fail(request.match_info["operation"], session.clock.now(), error))


def _steered(steer: Callable[[], None]) -> web.StreamResponse:
    try:
        steer()
    except ControlError as error:
        raise _Refusal(HTTPStatus.CONFLICT, str(error)) from None
    return web.Response(status=HTTPStatus.NO_CONTENT)


async def _ledger(request: web.Request) -> web.StreamResponse:
    session = _session(request)
    return _json({"jobs": session.boundary.ledger(session.clock.now())})


async def _history(request: web.Request) -> web.StreamResponse:
    log, page = _session(request).log, _query(request, Page)
    entries = log.read(page.after + 1, page.limit)
    after = entries[-1].seq if entries else min(page.after, len(log) - 1)
    return _json({"entries": entries, "after": after, "more": after + 1 < len(log)})


async def _stream(request: web.Request) -> web.StreamResponse:
    log, since = _session(request).log, _query(request, Since)
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
    await response.prepare(request)
    async for logged in log.follow(since.after + 1):
        await response.write(b"id: %d\ndata: %s\n\n" % (logged.seq, msgspec.json.encode(logged)))
    return response


async def _document(request: web.Request) -> web.StreamResponse:
    return _json(document("jobsworth: control API", request.app[_URL][0], CALLS))


async def _provider_document(request: web.Request) -> web.StreamResponse:
    session = _session(request)
    return _json(session.boundary.dialect.openapi(session.terms.contract, session.base_url))


class Call(Described, frozen=True, kw_only=True):
    """One call of the control API."""

    handler: Callable[[web.Request], Awaitable[web.StreamResponse]]


_FAULT: Final[TypeAdapter[AnyFault]] = TypeAdapter(AnyFault)
_ONE: Final = "/sessions/{session}"

CALLS: Final = (
    Call(method="GET", path="/sessions", summary="List the sessions.", handler=_list),
    Call(
        method="POST",
        path="/sessions",
        summary="Open a session: a provider of its own.",
        handler=_open,
        body=TypeAdapter(NewSession),
        success=HTTPStatus.CREATED,
        failures=(HTTPStatus.CONFLICT, HTTPStatus.SERVICE_UNAVAILABLE),
    ),
    Call(method="GET", path=_ONE, summary="Show a session.", handler=_show),
    Call(
        method="DELETE",
        path=_ONE,
        summary="End a session; the default one begins anew.",
        handler=_delete,
        success=HTTPStatus.NO_CONTENT,
    ),
    Call(method="POST", path=f"{_ONE}/reset", summary="Begin a session anew, on the same terms.", handler=_reset),
    Call(method="GET", path=f"{_ONE}/faults", summary="List the planned faults.", handler=_faults),
    Call(
        method="POST",
        path=f"{_ONE}/faults",
        summary="Plan one more fault.",
        handler=_arm,
        body=_FAULT,
        body_required=True,
        success=HTTPStatus.CREATED,
    ),
    Call(method="POST", path=f"{_ONE}/heal", summary="Disarm every fault.", handler=_heal),
    Call(method="GET", path=f"{_ONE}/clock", summary="Read the session's clock.", handler=_clock),
    Call(
        method="POST",
        path=f"{_ONE}/clock",
        summary="Move a manual clock forward.",
        handler=_advance,
        body=TypeAdapter(Advance),
        body_required=True,
        failures=(HTTPStatus.CONFLICT,),
    ),
    Call(
        method="POST",
        path=f"{_ONE}/operations/{{operation}}/complete",
        summary="Let the operation's job succeed now.",
        handler=_complete,
        success=HTTPStatus.NO_CONTENT,
        failures=(HTTPStatus.CONFLICT,),
    ),
    Call(
        method="POST",
        path=f"{_ONE}/operations/{{operation}}/fail",
        summary="Let the operation's job fail now.",
        handler=_fail,
        body=TypeAdapter(Failure),
        success=HTTPStatus.NO_CONTENT,
        failures=(HTTPStatus.CONFLICT,),
    ),
    Call(
        method="GET", path=f"{_ONE}/ledger", summary="Read the provider's books: every job as it is.", handler=_ledger
    ),
    Call(
        method="GET",
        path=f"{_ONE}/history",
        summary="Read what happened, in order.",
        handler=_history,
        query=TypeAdapter(Page),
    ),
    Call(
        method="GET",
        path=f"{_ONE}/history/stream",
        summary="Follow what happens, as server-sent events.",
        handler=_stream,
        query=TypeAdapter(Since),
        content_type="text/event-stream",
    ),
    Call(
        method="GET",
        path=f"{_ONE}/openapi.json",
        summary="Describe the session's provider.",
        handler=_provider_document,
    ),
    Call(method="GET", path="/openapi.json", summary="Describe this API.", handler=_document),
)
"""Every call."""


@web.middleware
async def _problems(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Answer every refusal as a problem."""
    try:
        return await handler(request)
    except _Refusal as refusal:
        return problem(refusal.status, refusal.detail)
    except NoSuchSession as error:
        return problem(HTTPStatus.NOT_FOUND, str(error.args[0]))
    except SessionsFull as error:
        return problem(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
    except web.HTTPException as error:
        answer = problem(HTTPStatus(error.status), error.reason)
        if "Allow" in error.headers:
            answer.headers["Allow"] = error.headers["Allow"]
        return answer


class Control:
    """The control API behind a loopback port."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._runner: web.AppRunner | None = None

    async def open_port(self, port: int = 0) -> str:
        """Listen, and return the base URL. ``OSError`` if the port is taken."""
        app = web.Application(middlewares=[_problems], client_max_size=MAX_BODY_BYTES)
        app[_SESSIONS] = self._sessions
        app[_URL] = url = [""]
        for call in CALLS:
            app.router.add_route(call.method, call.path, call.handler)
        # Handlers are cancelled when their client hangs up, or a stream would outlive its reader.
        self._runner = web.AppRunner(
            app, handler_cancellation=True, access_log=None, shutdown_timeout=CLOSING_S, logger=LOGGER
        )
        await self._runner.setup()
        await web.TCPSite(self._runner, LOOPBACK, port, backlog=BACKLOG).start()
        url[0] = f"http://{LOOPBACK}:{self._runner.addresses[0][1]}"
        return url[0]

    async def close(self) -> None:
        """Close the port and every connection."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None
