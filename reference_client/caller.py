"""Outside calls over httpx2: one request out, one whole answer in, every failure a class. The only module that sends.

Redirects are off, environment proxies are off, time-outs and limits are explicit, answers are bounded. The credential
is attached underneath, by ``reference_client.credentials.AuthorizedTransport``.
"""

import asyncio
import ssl
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

import httpx2
import msgspec

from reference_client.adapters.protocol import Answer, NoAnswer, Request
from reference_client.config import Timing
from reference_client.credentials import AuthorizedTransport, CredentialError, CredentialSource
from reference_client.operation import Call, Operation, span_id

__all__ = ["Caller"]

_CONNECTIONS: Final = 32
"""Enough for every operation that a worker has in hand at once, with some to spare."""

_HEADERS: Final = {"accept": "application/json", "user-agent": "jobsworth-reference-client"}

_FAILURES: Final[tuple[tuple[type[Exception], str, bool], ...]] = (
    # class, name, whether any byte may have been sent
    (httpx2.ConnectTimeout, "connect_timeout", False),
    (httpx2.ConnectError, "connect_failed", False),
    (httpx2.PoolTimeout, "no_connection_free", False),
    (httpx2.UnsupportedProtocol, "unsupported_protocol", False),
    (httpx2.LocalProtocolError, "request_cannot_be_sent", False),
    (httpx2.InvalidURL, "invalid_address", False),
    (CredentialError, "no_credential", False),
    (httpx2.TimeoutException, "timeout", True),
    (httpx2.NetworkError, "reset", True),
    (httpx2.RemoteProtocolError, "cut", True),
    (httpx2.DecodingError, "undecodable", True),
    (httpx2.HTTPError, "http_failure", True),
)


class Caller:
    """One HTTP client for a worker's life.

    Args:
        base_url: the provider's; the credential is for its origin only.
        credentials: read at the transport.
        timing: the time-outs.
        transport: for tests and simulation; None: the network.
        answer_limit_bytes: an answer that is larger counts as none.
    """

    def __init__(
        self,
        *,
        base_url: str,
        credentials: CredentialSource,
        timing: Timing,
        transport: httpx2.AsyncBaseTransport | None = None,
        answer_limit_bytes: int = 256 << 20,
    ) -> None:
        address = urlsplit(base_url)
        self._origin = f"{address.scheme}://{address.netloc}"
        self._limit_s = timing.call_limit_s
        self._limit_bytes = answer_limit_bytes
        network = transport or httpx2.AsyncHTTPTransport(
            # To read all certificates takes longer than the rest of a start. A bare context trusts nobody.
            verify=address.scheme != "http" or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
            limits=httpx2.Limits(max_connections=_CONNECTIONS, max_keepalive_connections=_CONNECTIONS),
            trust_env=False,
        )
        self._extensions = {"timeout": httpx2.Timeout(timing.request_timeout_s).as_dict()}
        self._transport = AuthorizedTransport(network, credentials, origin=base_url)
        self._client = httpx2.AsyncClient(
            transport=self._transport,
            follow_redirects=False,
            trust_env=False,
        )

    async def call(self, operation: Operation, request: Request) -> Answer | NoAnswer:
        """Send ``request`` once, in the operation's trace (W8.1), and wait for the whole answer.

        ``received_at`` of what is returned is 0: the caller's clock is not the store's. See ``Worker``.
        """
        traceparent = f"00-{operation.trace_id}-{span_id(operation.trace_id, operation.calls)}-01"
        url = self._origin + request.path
        response: httpx2.Response | None = None
        try:
            async with asyncio.timeout(self._limit_s):
                outgoing = httpx2.Request(
                    request.method,
                    _parsed(url),
                    headers={**_HEADERS, **request.headers, "traceparent": traceparent},
                    content=request.body,
                    extensions=self._extensions,
                )
                response = await self._client.send(outgoing, stream=True)
                try:
                    body = await self._read(response)
                finally:
                    await response.aclose()
        except TimeoutError:
            failure = NoAnswer(error="timeout", detail=f"no whole answer within {self._limit_s:g} s", received_at=0.0)
            return self._broken_off(failure, url, response)
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, CredentialError) as error:
            return self._broken_off(_failure(error), url, response)
        if body is None:
            return NoAnswer(error="too_large", detail=f"more than {self._limit_bytes} bytes", received_at=0.0)
        if not self._is_result(operation, response.status_code):
            body = self._transport.redact(body)
        return Answer(url=url, status=response.status_code, headers=self._headers(response), body=body, received_at=0.0)

    @staticmethod
    def _is_result(operation: Operation, status: int) -> bool:
        """Whether a body is the result itself, of which no byte may change."""
        flight = operation.in_flight
        return status == 200 and flight is not None and flight.call is Call.RESULT

    async def _read(self, response: httpx2.Response) -> bytes | None:
        chunks: list[bytes] = []
        size = 0
        async for chunk in response.aiter_bytes():
            size += len(chunk)
            if size > self._limit_bytes:
                return None
            chunks.append(chunk)
        return b"".join(chunks)

    def _headers(self, response: httpx2.Response) -> dict[str, str]:
        """Return header names in lower case; of a name that comes twice, all values."""
        headers: dict[str, str] = {}
        for raw_name, raw_value in response.headers.raw:
            name, value = raw_name.decode("latin-1").lower(), self._transport.redact(raw_value).decode("latin-1")
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        return headers

    def _broken_off(self, failure: NoAnswer, url: str, response: httpx2.Response | None) -> NoAnswer:
        """Keep what came of an answer that broke off."""
        if response is None:
            return failure
        return msgspec.structs.replace(failure, url=url, status=response.status_code, headers=self._headers(response))

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()


@lru_cache(maxsize=1024)
def _parsed(url: str) -> httpx2.URL:
    """Parse a URL. A job's is asked for at every poll, and parsing is half the cost of making the request."""
    return httpx2.URL(url)


def _failure(error: Exception) -> NoAnswer:
    for kind, name, sent in _FAILURES:
        if isinstance(error, kind):
            # The class is enough; a library's message may quote what was sent.
            return NoAnswer(error=name, detail=type(error).__name__, received_at=0.0, sent=sent)
    return NoAnswer(error="http_failure", detail=type(error).__name__, received_at=0.0)
