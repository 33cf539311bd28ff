"""The provider by itself: sessions that see nothing of each other, and the API that steers them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import httpx2
import pytest
from aiohttp import web

from fake_provider import sessions as sessions_module
from fake_provider.sessions import HostOutOfReach, Sessions, SessionsFull, SessionTerms
from fake_provider.standalone import Standalone

CREATE = {"kind": "report", "client_reference": "op-1"}
KEYED = {"Authorization": "Bearer x", "Idempotency-Key": "k"}


class Desk:
    """One served provider, a client of it, and a client of its control API."""

    def __init__(self, served: Standalone, provider: httpx2.AsyncClient, control: httpx2.AsyncClient) -> None:
        self.served = served
        self.provider = provider
        self.control = control

    async def open(self, **terms: Any) -> dict[str, Any]:
        answer = await self.control.post("/sessions", json=terms)
        assert answer.status_code == 201, answer.text
        session: dict[str, Any] = answer.json()
        return session

    async def create(self, base_url: str = "") -> httpx2.Response:
        return await self.provider.post(f"{base_url}/v1/jobs", json=CREATE)

    async def steer(self, session: str, call: str, body: Any = None) -> httpx2.Response:
        return await self.control.post(f"/sessions/{session}/{call}", json=body)

    async def read(self, session: str, call: str, **query: Any) -> Any:
        answer = await self.control.get(f"/sessions/{session}/{call}", params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()


def serve(story: Callable[[Desk], Awaitable[object]], **terms: Any) -> None:
    async def run() -> None:
        async with AsyncExitStack() as stack:
            served = await stack.enter_async_context(Standalone(SessionTerms.model_validate(terms)))
            provider = httpx2.AsyncClient(base_url=served.base_url, headers=KEYED, trust_env=False, timeout=5)
            control = httpx2.AsyncClient(base_url=served.control_url, trust_env=False, timeout=5)
            await stack.enter_async_context(provider)
            await stack.enter_async_context(control)
            await story(Desk(served, provider, control))

    asyncio.run(run())


def test_a_client_that_names_no_session_uses_the_default_one() -> None:
    async def story(desk: Desk) -> None:
        assert (await desk.create()).headers["Location"].startswith(desk.served.base_url + "/v1/jobs/")
        assert len((await desk.read("default", "ledger"))["jobs"]) == 1

    serve(story)


def test_sessions_see_nothing_of_each_other() -> None:
    async def story(desk: Desk) -> None:
        first, second = await desk.open(name="one"), await desk.open(contract="stripe-like")
        by_path = await desk.create(first["base_url"])
        assert by_path.headers["Location"].startswith(first["base_url"])
        assert (await desk.provider.get(by_path.headers["Location"])).status_code == 200
        by_header = await desk.provider.post("/v1/jobs", json=CREATE, headers={"Jobsworth-Session": second["name"]})
        assert by_header.status_code == 200, "its own contract"
        assert by_header.json()["id"] != by_path.json()["id"] or first["name"] != second["name"]
        for session, jobs in (("default", 0), ("one", 1), (second["name"], 1)):
            assert len((await desk.read(session, "ledger"))["jobs"]) == jobs

    serve(story)


@pytest.mark.parametrize("path", ["/s/nobody/v1/jobs", "/s/", "/s//v1/jobs"])
def test_a_session_that_is_not_there_is_not_found(path: str) -> None:
    async def story(desk: Desk) -> None:
        answer = await desk.provider.get(path)
        assert (answer.status_code, answer.headers["Content-Type"]) == (404, "application/problem+json")
        assert (await desk.provider.get("/v1/jobs", headers={"Jobsworth-Session": "x"})).status_code == 404
        assert (await desk.control.get("/sessions/nobody")).status_code == 404

    serve(story)


def test_a_redirect_of_a_session_leads_to_the_same_session_elsewhere() -> None:
    async def story(desk: Desk) -> None:
        session = await desk.open(name="one", faults=[{"kind": "redirect", "at": "create#1:received"}])
        location = (await desk.create(session["base_url"])).headers["Location"]
        assert not location.startswith(desk.served.base_url)
        await desk.provider.post(location, json=CREATE)
        entries = (await desk.read("one", "history"))["entries"]
        origins = [entry["fact"]["origin"] for entry in entries if "origin" in entry["fact"]]
        assert origins == [location.removesuffix("/v1/jobs")]

    serve(story)


def test_faults_are_armed_listed_and_healed() -> None:
    async def story(desk: Desk) -> None:
        assert (await desk.steer("default", "faults", {"kind": "server_error", "at": "create#*:received"})).json() == {
            "fault": 0
        }
        assert (await desk.create()).status_code == 503
        (listed,) = (await desk.read("default", "faults"))["faults"]
        assert (listed["kind"], listed["at"], listed["struck"], listed["armed"]) == (
            "server_error",
            "create#*:received",
            True,
            True,
        )
        healed = (await desk.steer("default", "heal")).json()
        assert (healed["planned"], healed["struck"]) == (1, 1)
        assert (await desk.create()).status_code == 202

    serve(story)


def test_a_manual_clock_moves_when_told_and_everything_in_between_happens_at_its_time() -> None:
    async def story(desk: Desk) -> None:
        session = await desk.open(clock="manual")
        name, base_url = session["name"], session["base_url"]
        job = (await desk.create(base_url)).headers["Location"]
        assert (await desk.provider.get(job)).json()["status"] == "running"
        await desk.steer(name, "clock", {"advance_s": 3})
        assert (await desk.provider.get(job)).json()["status"] == "succeeded"
        assert (await desk.read(name, "clock"))["now"] == session["now"] + 3
        entries = (await desk.read(name, "history"))["entries"]
        ended = [entry["at"] for entry in entries if entry["fact"].get("after") == "succeeded"]
        assert ended == [2.0]

    serve(story)


def test_the_systems_clock_cannot_be_moved() -> None:
    async def story(desk: Desk) -> None:
        answer = await desk.steer("default", "clock", {"advance_s": 3})
        assert (answer.status_code, "clock: manual" in answer.json()["detail"]) == (409, True)

    serve(story)


def test_webhooks_of_a_manual_clock_are_delivered_within_the_step() -> None:
    async def story(desk: Desk) -> None:
        took: list[str] = []

        async def receive(request: web.BaseRequest) -> web.Response:
            took.append(json.loads(await request.read())["type"])
            return web.Response(status=500 if len(took) == 1 else 200)

        runner = web.ServerRunner(web.Server(receive))
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        session = await desk.open(
            clock="manual",
            contract={"webhooks": {"enabled": True}},
            webhook_url=f"http://127.0.0.1:{runner.addresses[0][1]}/",
        )
        await desk.create(session["base_url"])
        await desk.steer(session["name"], "clock", {"advance_s": 10})
        assert took == ["job.succeeded", "job.succeeded"]
        await runner.cleanup()

    serve(story)


@pytest.mark.parametrize(("call", "state"), [("complete", "succeeded"), ("fail", "failed")])
def test_a_job_is_ended_by_hand(call: str, state: str) -> None:
    async def story(desk: Desk) -> None:
        job = (await desk.create()).headers["Location"]
        assert (await desk.steer("default", f"operations/op-1/{call}", {})).status_code == 204
        assert (await desk.provider.get(job)).json()["status"] == state
        again = await desk.steer("default", f"operations/op-1/{call}", {})
        assert again.status_code == 409
        assert state in again.json()["detail"]

    serve(story)


def test_history_comes_in_pages() -> None:
    async def story(desk: Desk) -> None:
        await desk.create()
        whole = (await desk.read("default", "history"))["entries"]
        assert [entry["seq"] for entry in whole] == list(range(len(whole)))
        seen: list[Any] = []
        page: dict[str, Any] = {"after": -1, "more": True}
        while page["more"]:
            page = await desk.read("default", "history", after=page["after"], limit=2)
            seen += page["entries"]
        assert seen == whole
        assert (await desk.read("default", "history", after=10**6))["entries"] == []

    serve(story)


def test_history_is_streamed_as_it_happens() -> None:
    async def story(desk: Desk) -> None:
        await desk.create()
        async with desk.control.stream("GET", "/sessions/default/history/stream", params={"after": 0}) as stream:
            assert stream.headers["Content-Type"] == "text/event-stream"
            lines = stream.aiter_lines()
            assert await anext(lines) == "id: 1"
            assert json.loads((await anext(lines)).removeprefix("data: "))["fact"]["fact"] == "job_created"
            asked = asyncio.create_task(desk.provider.get("/v1/jobs/none"))
            async for line in lines:
                if '"path":"/v1/jobs/none"' in line:
                    break
            await asked

    serve(story)


def test_reset_begins_anew_on_the_same_terms() -> None:
    async def story(desk: Desk) -> None:
        session = await desk.open(name="one", faults=[{"kind": "server_error", "at": "create#1:received"}])
        assert (await desk.create(session["base_url"])).status_code == 503
        assert (await desk.steer("one", "reset")).json()["facts"] == 0
        assert (await desk.create(session["base_url"])).status_code == 503

    serve(story)


def test_a_session_is_ended_and_the_default_one_begins_anew() -> None:
    async def story(desk: Desk) -> None:
        await desk.open(name="one")
        await desk.create()
        for name in ("one", "default"):
            assert (await desk.control.delete(f"/sessions/{name}")).status_code == 204
        assert [session["name"] for session in (await desk.control.get("/sessions")).json()["sessions"]] == ["default"]
        assert (await desk.read("default", "ledger"))["jobs"] == []

    serve(story)


@pytest.mark.parametrize(
    ("terms", "status", "said"),
    [
        ({"contract": "careles"}, 422, "did you mean 'careless'"),
        ({"contract": {"create_answer": "synchronous", "webhooks": {"enabled": True}}}, 422, "has no webhooks"),
        ({"faults": [{"kind": "kill", "at": "create#1:committed"}]}, 422, "client's host, out of reach"),
        ({"faults": [{"kind": "answer_lost", "at": "create#1:received"}]}, 422, "it can at create:committed"),
        ({"dialect": "soap"}, 422, "there is no dialect 'soap'; one of jobs"),
        ({"dialect": "openai-batch", "contract": "careful"}, 422, "cannot write down this contract"),
        ({"name": "default"}, 409, "there is a session 'default' already"),
        ({"name": "../x"}, 422, "name: String should match pattern"),
        ({"nmae": "x"}, 422, "nmae: there is no such key; one of "),
        ([], 422, "body: Input should be an object"),
    ],
)
def test_terms_that_are_wrong_are_refused_with_every_reason(terms: Any, status: int, said: str) -> None:
    async def story(desk: Desk) -> None:
        answer = await desk.control.post("/sessions", json=terms)
        assert (answer.status_code, answer.headers["Content-Type"]) == (status, "application/problem+json")
        assert said in answer.json()["detail"]

    serve(story)


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/sessions/default/faults", b"{", 422),
        ("POST", "/sessions/default/faults", b"", 422),
        ("POST", "/sessions/default/faults", b" " * (2 << 20), 413),
        ("POST", "/sessions/default/clock", b'{"advance_s": -1}', 422),
        ("POST", "/sessions/default/clock", b'{"advance_s": 1e300}', 422),
        ("GET", "/sessions/default/history?after=x", b"", 422),
        ("GET", "/sessions/default/history?limit=0", b"", 422),
        ("PUT", "/sessions", b"", 405),
        ("GET", "/nothing", b"", 404),
    ],
)
def test_bad_input_is_a_problem(method: str, path: str, body: bytes, status: int) -> None:
    async def story(desk: Desk) -> None:
        answer = await desk.control.request(method, path, content=body)
        assert (answer.status_code, answer.headers["Content-Type"]) == (status, "application/problem+json")
        assert answer.json()["status"] == status

    serve(story)


def _sessions(idle_s: float = 1_000.0) -> Sessions:
    return Sessions(
        default=SessionTerms(), base_url=lambda name: f"http://x/{name}", deliver=lambda url: _never, idle_s=idle_s
    )


async def _never(attempt: object) -> None:
    raise AssertionError("no test here has webhooks")


def test_there_are_no_more_sessions_than_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        sessions = _sessions()
        sessions.start()
        await sessions.create(SessionTerms())
        with pytest.raises(SessionsFull, match="delete those that are done"):
            await sessions.create(SessionTerms())
        await sessions.close()

    monkeypatch.setattr(sessions_module, "MAX_SESSIONS", 2)
    asyncio.run(story())


def test_a_session_nobody_uses_expires_and_the_default_one_does_not() -> None:
    async def story() -> None:
        sessions = _sessions(idle_s=0)
        sessions.start()
        await sessions.create(SessionTerms(), "old")
        await sessions.create(SessionTerms(), "new")
        assert sorted(session.name for session in sessions) == ["default", "new"]
        await sessions.close()

    asyncio.run(story())


def test_a_default_session_that_needs_the_clients_host_is_refused_before_anything_listens() -> None:
    with pytest.raises(HostOutOfReach, match="stop strikes at the client's host"):
        serve(lambda desk: asyncio.sleep(0), faults=[{"kind": "stop", "at": "create#1:committed"}])


@pytest.mark.parametrize("document", ["/openapi.json", "/sessions/default/openapi.json"])
def test_both_apis_describe_themselves(document: str) -> None:
    """That what they describe is what they do is for schemathesis to say."""

    async def story(desk: Desk) -> None:
        told = (await desk.control.get(document)).json()
        assert told["openapi"].startswith("3.1")
        url = desk.served.control_url if document == "/openapi.json" else desk.served.base_url
        assert told["servers"] == [{"url": url}]
        text = json.dumps(told)
        for reference in {part.split('"')[0] for part in text.split('"#/components/schemas/')[1:]}:
            assert reference in told["components"]["schemas"]

    serve(story)


def test_a_session_promises_what_its_dialect_does_where_nothing_else_is_said() -> None:
    async def story(desk: Desk) -> None:
        session = await desk.open(dialect="openai-batch")
        listed = await desk.provider.get(f"{session['base_url']}/v1/batches")
        assert listed.json() == {"object": "list", "data": [], "first_id": None, "last_id": None, "has_more": False}
        document = await desk.control.get(f"/sessions/{session['name']}/openapi.json")
        assert "/v1/batches/{batch}/cancel" in json.dumps(document.json())

    serve(story)
