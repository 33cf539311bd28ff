"""Where the credential goes, and where it does not (W8.3)."""

from __future__ import annotations

import asyncio
import logging
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import httpcore2
import httpx2
import msgspec
import pytest

from reference_client.adapters.protocol import Answer, NoAnswer, Request
from reference_client.assembly import assemble
from reference_client.caller import Caller
from reference_client.config import Timing
from reference_client.credentials import (
    AuthorizedTransport,
    CommandCredential,
    CredentialError,
    EnvironmentCredential,
    FileCredential,
    GivenCredential,
    KeyringCredential,
    credential_from,
)
from reference_client.operation import Call, InFlight, Operation
from reference_client.stores.sqlite import SQLiteStore
from reference_client.story import escalation_packet, shown
from reference_client.story import story as told

if TYPE_CHECKING:
    from pathlib import Path

    from tests.reference_client.conftest import Story

CANARY = "Bearer canary-5f0e9a7c1d"
BASE = "http://provider.test"


def sent(url: str, answer: Any = None) -> httpx2.Request:
    """Send one request through the transport that attaches the credential; return what came out below."""
    seen: list[httpx2.Headers] = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        seen.append(httpx2.Headers(request.headers))
        if isinstance(answer, Exception):
            raise answer
        return answer or httpx2.Response(200)

    async def send() -> httpx2.Request:
        transport = AuthorizedTransport(httpx2.MockTransport(handler), GivenCredential(CANARY), origin=BASE)
        request = httpx2.Request("GET", url)
        with suppress(httpx2.HTTPError):
            await transport.handle_async_request(request)
        assert "authorization" not in request.headers, "it is taken off again"
        return httpx2.Request("GET", url, headers=seen[0])

    return asyncio.run(send())


def test_certificates_are_read_for_a_provider_that_is_called_over_tls_and_for_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read = Mock(wraps=httpcore2.default_ssl_context)
    monkeypatch.setattr(httpcore2, "default_ssl_context", read)
    for base_url, times in ((BASE, 0), ("https://provider.test", 1), ("HTTPS://provider.test", 2)):
        Caller(base_url=base_url, credentials=GivenCredential(CANARY), timing=Timing())
        assert read.call_count == times


@pytest.mark.parametrize("url", [BASE, f"{BASE}/v1/jobs", "http://provider.test:80/x"])
def test_it_is_attached_for_the_one_origin(url: str) -> None:
    assert sent(url).headers["authorization"] == CANARY


@pytest.mark.parametrize(
    "url", ["https://provider.test/", "http://provider.test:8080/", "http://provider.test.evil/", "http://other.test/"]
)
def test_it_is_not_attached_for_any_other(url: str) -> None:
    assert "authorization" not in sent(url).headers


def test_it_is_gone_when_the_network_fails() -> None:
    sent(BASE, httpx2.ReadError("reset"))


def call(story: Story, handler: Any, *, timing: Timing | None = None, **options: Any) -> Answer | NoAnswer:
    async def run() -> Answer | NoAnswer:
        caller = Caller(
            base_url=BASE,
            credentials=options.pop("credentials", GivenCredential(CANARY)),
            timing=timing or Timing(),
            transport=httpx2.MockTransport(handler),
            **options,
        )
        try:
            return await caller.call(story.operation, Request(method="GET", path="/v1/jobs/job_1"))
        finally:
            await caller.close()

    return asyncio.run(run())


def test_a_redirect_is_an_answer_and_is_not_followed(story: Story) -> None:
    asked: list[str] = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        asked.append(str(request.url))
        return httpx2.Response(302, headers={"location": "http://elsewhere.test/"})

    answer = call(story, handler)
    assert isinstance(answer, Answer)
    assert answer.status == 302
    assert asked == [f"{BASE}/v1/jobs/job_1"]


@pytest.mark.parametrize(
    ("error", "name", "was_sent"),
    [
        (httpx2.ConnectError("x"), "connect_failed", False),
        (httpx2.ConnectTimeout("x"), "connect_timeout", False),
        (httpx2.PoolTimeout("x"), "no_connection_free", False),
        (httpx2.ReadTimeout("x"), "timeout", True),
        (httpx2.WriteTimeout("x"), "timeout", True),
        (httpx2.ReadError("x"), "reset", True),
        (httpx2.WriteError("x"), "reset", True),
        (httpx2.RemoteProtocolError("x"), "cut", True),
        (httpx2.DecodingError("x"), "undecodable", True),
    ],
)
def test_each_failure_has_a_class_and_says_whether_anything_was_sent(
    story: Story, error: Exception, name: str, *, was_sent: bool
) -> None:
    def handler(_: httpx2.Request) -> httpx2.Response:
        raise error

    answer = call(story, handler)
    assert isinstance(answer, NoAnswer)
    assert (answer.error, answer.sent) == (name, was_sent)


def test_the_words_of_a_library_are_not_repeated(story: Story) -> None:
    def handler(_: httpx2.Request) -> httpx2.Response:
        raise httpx2.ReadError(f"while sending {CANARY}")

    assert CANARY not in repr(call(story, handler))


def test_a_credential_that_the_provider_repeats_is_taken_out_of_what_it_says(story: Story) -> None:
    def handler(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, json={"you": CANARY}, headers={"x-request-id": CANARY.removeprefix("Bearer ")})

    answer = call(story, handler)
    assert isinstance(answer, Answer)
    assert answer.body == b'{"you":"[redacted]"}'
    assert answer.headers["x-request-id"] == "[redacted]"


def test_of_a_result_no_byte_is_changed(story: Story) -> None:
    flight = InFlight(call=Call.RESULT, attempt=1, since=0.0, worker="w1", fence=1)
    story.operation = msgspec.structs.replace(story.operation, in_flight=flight)
    answer = call(story, lambda _: httpx2.Response(200, content=CANARY.encode()))
    assert isinstance(answer, Answer)
    assert answer.body == CANARY.encode()


def test_an_answer_without_end_counts_as_none(story: Story) -> None:
    answer = call(story, lambda _: httpx2.Response(200, content=b"x" * 11), answer_limit_bytes=10)
    assert isinstance(answer, NoAnswer)
    assert answer.error == "too_large"


def test_a_call_ends_even_if_the_answer_trickles(story: Story) -> None:
    async def handler(_: httpx2.Request) -> httpx2.Response:
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    answer = call(story, handler, timing=Timing(request_timeout_s=0.01))
    assert isinstance(answer, NoAnswer)
    assert answer.error == "timeout"


def test_without_its_credential_a_request_never_leaves(story: Story) -> None:
    def handler(_: httpx2.Request) -> httpx2.Response:
        raise AssertionError("it left")

    answer = call(story, handler, credentials=EnvironmentCredential("X", {}))
    assert isinstance(answer, NoAnswer)
    assert (answer.error, answer.sent) == ("no_credential", False)


# sources


def value(reference: str) -> str:
    return asyncio.run(credential_from(reference).authorization())


def test_it_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOBS_AUTH", CANARY)
    assert value("env:JOBS_AUTH") == CANARY


def test_it_comes_from_a_file_which_is_read_anew(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    source = FileCredential(file)
    for content in (CANARY, "Bearer rotated"):
        file.write_text(f"{content}\n")
        assert asyncio.run(source.authorization()) == content


def test_it_comes_from_a_command_which_is_run_once(tmp_path: Path) -> None:
    script = tmp_path / "say.py"
    script.write_text(
        f"import pathlib\npathlib.Path({str(tmp_path / 'runs')!r}).open('a').write('.')\nprint({CANARY!r})"
    )
    source = CommandCredential(f"{sys.executable} {script}")

    async def twice() -> list[str]:
        return [await source.authorization(), await source.authorization()]

    assert asyncio.run(twice()) == [CANARY, CANARY]
    assert (tmp_path / "runs").read_text() == "."
    assert str(script) not in source.reference


def test_it_comes_from_the_keyring_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    class Keyring:
        @staticmethod
        def get_password(service: str, user: str) -> str | None:
            return CANARY if (service, user) == ("jobs", "ann") else None

    monkeypatch.setitem(sys.modules, "keyring", Keyring)
    assert value("keyring:jobs/ann") == CANARY
    with pytest.raises(CredentialError, match="no such entry"):
        value("keyring:jobs/bob")


def test_a_keyring_that_is_not_installed_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(CredentialError, match="not installed"):
        asyncio.run(KeyringCredential("jobs", "ann").authorization())


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("env:SURELY_NOT_SET_ANYWHERE", "not set"),
        ("file:/nonexistent/secret", "cannot be read"),
        ("command:/nonexistent/program", "cannot be run"),
        ("command:false", "exit status 1"),
        ("command:true", "printed nothing"),
    ],
)
def test_what_cannot_be_had_is_an_error_by_reference(reference: str, message: str) -> None:
    with pytest.raises(CredentialError, match=message):
        value(reference)


@pytest.mark.parametrize("text", [CANARY, "", "env:", "keyring:jobs", "vault:x", "file:"])
def test_what_is_no_reference_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(CredentialError, match="no such credential reference") as caught:
        credential_from(text)
    assert "canary" not in str(caught.value)


def test_a_value_with_a_line_break_is_no_header_value(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("Bearer a\nX-Evil: b")
    with pytest.raises(CredentialError, match="control characters"):
        value(f"file:{tmp_path / 'secret'}")


def test_no_source_shows_its_value() -> None:
    for source in (GivenCredential(CANARY), CommandCredential(f"echo {CANARY}")):
        assert "canary" not in repr(source)
        assert "canary" not in source.reference


# the canary


def test_nothing_that_the_client_writes_holds_a_secret(
    tmp_path: Path, story: Story, caplog: pytest.LogCaptureFixture
) -> None:
    """A whole run against a hostile provider that repeats the credential, with everything that was written searched."""
    secret = "whsec_Y2FuYXJ5LXdlYmhvb2stc2VjcmV0"
    log: list[str] = []

    async def hostile(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            log.append(head.decode())
            repeated = next(line for line in head.split(b"\r\n") if line.lower().startswith(b"authorization:"))
            body = b'{"type":"about:blank","detail":"what is %b?"}' % repeated.replace(b"uthorization: Bearer ", b"")
            writer.write(
                b"HTTP/1.1 503 Busy\r\ncontent-type: application/problem+json\r\ncontent-length: %d\r\n"
                b"x-request-id: %b\r\nconnection: close\r\n\r\n%b" % (len(body), repeated[15:], body)
            )
            await writer.drain()
        finally:
            writer.close()
            await writer.wait_closed()

    async def run() -> str:
        server = await asyncio.start_server(hostile, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        store = SQLiteStore(tmp_path / "operations.sqlite")
        assembly = assemble(
            worker="w1",
            base_url=f"http://127.0.0.1:{port}",
            store=store,
            credentials=EnvironmentCredential("JOBS_AUTH", {"JOBS_AUTH": CANARY}),
            timing=Timing(request_timeout_s=1, poll_first_s=0.01, poll_cap_s=0.02, create_deadline_s=0.2),
            webhook_secrets=(secret,),
        )
        await assembly.client.submit("op-1", {"kind": "report"}, authorised_by="ann")
        working = asyncio.create_task(assembly.client.run())
        await assembly.intake.take({"webhook-id": "evt", "webhook-signature": "v1,x"}, b"{}")
        while not (await store.load("op-1")).at_rest:
            await asyncio.wait({working}, timeout=0.02)
        assembly.client.stop()
        await working
        record, history = await store.load("op-1"), await store.history("op-1")
        written = "\n".join(told(record, history)) + repr(shown(record)) + repr(escalation_packet(record, history))
        written += repr(history) + repr(await assembly.client.summaries())
        await assembly.close()
        server.close()
        await server.wait_closed()
        return written

    with caplog.at_level(logging.INFO), caplog.at_level(logging.DEBUG, logger="reference_client"):
        written = asyncio.run(run())
    assert any(CANARY in head for head in log), "it did reach the provider"
    files = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert len(files) > 1000
    assert "[redacted]" in written, "the provider did repeat it"
    for hidden in (CANARY.removeprefix("Bearer "), secret):
        assert hidden not in written
        assert hidden.encode() not in files
        assert hidden not in caplog.text


def test_the_record_has_no_field_that_could_hold_one(story: Story) -> None:
    assert not {"authorization", "credential", "password", "secret"} & set(Operation.__struct_fields__)
