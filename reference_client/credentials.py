"""Custody of the provider's credential: where it is read, where it is attached, and nowhere else (W8.3).

A :class:`CredentialSource` is named by a *reference* ("env:JOBS_AUTHORIZATION"), which may be shown and stored; what
it yields is the value of the Authorization header, which may not. The value is read by :class:`AuthorizedTransport`
alone, the last thing before the network, for requests to one origin. The code that decides, stores and logs sits
above and never holds it.
"""

import asyncio
import os
import shlex
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Protocol

import httpx2

__all__ = [
    "AuthorizedTransport",
    "CommandCredential",
    "CredentialError",
    "CredentialSource",
    "EnvironmentCredential",
    "FileCredential",
    "GivenCredential",
    "KeyringCredential",
    "credential_from",
]

_COMMAND_LIMIT_S: Final = 30.0
"""A command that asks a person for a password takes seconds; one that hangs must not hold the worker."""

_SHORTEST_SECRET_BYTES: Final = 8
"""What is shorter than this is no secret, and would be found in any text."""


class CredentialError(RuntimeError):
    """A credential that cannot be had. The message names the reference, never a value."""


class CredentialSource(Protocol):
    """Yields the value of the Authorization header."""

    @property
    def reference(self) -> str:
        """A name for the credential that may be shown and stored."""
        ...

    async def authorization(self) -> str:
        """Return the header value. Raises: CredentialError."""
        ...


class GivenCredential:
    """A credential handed over in memory by the program around this one."""

    reference: Final = "given"

    def __init__(self, value: str) -> None:
        self._value = value

    def __repr__(self) -> str:
        return "GivenCredential(…)"

    async def authorization(self) -> str:
        return self._value


class EnvironmentCredential:
    """An environment variable that holds the whole header value, such as ``Bearer …``."""

    def __init__(self, variable: str, environment: Mapping[str, str] = os.environ) -> None:
        self.reference = f"env:{variable}"
        self._variable = variable
        self._environment = environment

    async def authorization(self) -> str:
        value = self._environment.get(self._variable, "")
        return _clean(self.reference, value, "the variable is not set, or empty")


class FileCredential:
    """A file that holds the header value; read anew for each request, so that rotating it needs no restart."""

    def __init__(self, path: Path) -> None:
        self.reference = f"file:{path}"
        self._path = path

    async def authorization(self) -> str:
        try:
            value = self._path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise CredentialError(f"{self.reference}: cannot be read ({type(error).__name__})") from None
        return _clean(self.reference, value, "the file is empty")


class CommandCredential:
    """A command that prints the header value. Run without a shell, once, and again when the process starts anew."""

    def __init__(self, command: str) -> None:
        self.reference = f"command:{shlex.split(command)[0] if command.split() else ''}"
        self._arguments = shlex.split(command)
        self._value: str | None = None

    def __repr__(self) -> str:
        return f"CommandCredential({self.reference!r})"

    async def authorization(self) -> str:
        if self._value is None:
            self._value = _clean(self.reference, await self._run(), "the command printed nothing")
        return self._value

    async def _run(self) -> str:
        try:
            process = await asyncio.create_subprocess_exec(
                *self._arguments, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE
            )
        except (OSError, TypeError, ValueError) as error:
            raise CredentialError(f"{self.reference}: cannot be run ({type(error).__name__})") from None
        try:
            async with asyncio.timeout(_COMMAND_LIMIT_S):
                output, _ = await process.communicate()
        except TimeoutError:
            raise CredentialError(f"{self.reference}: no answer within {_COMMAND_LIMIT_S:.0f} s") from None
        finally:
            if process.returncode is None:  # the call that needed it may have run out of time before
                process.kill()
                await process.wait()
        if process.returncode != 0:
            raise CredentialError(f"{self.reference}: exit status {process.returncode}")
        return output.decode("utf-8", "replace")


class KeyringCredential:
    """An entry of the operating system's keyring, through the ``keyring`` package where that is installed."""

    def __init__(self, service: str, user: str) -> None:
        self.reference = f"keyring:{service}/{user}"
        self._service = service
        self._user = user

    async def authorization(self) -> str:
        try:
            keyring: Any = import_module("keyring")
        except ImportError:
            raise CredentialError(f"{self.reference}: the package `keyring` is not installed") from None
        try:
            value = await asyncio.to_thread(keyring.get_password, self._service, self._user)
        except Exception as error:  # noqa: BLE001  a backend may raise anything, and its message may hold anything
            raise CredentialError(f"{self.reference}: the keyring failed ({type(error).__name__})") from None
        return _clean(self.reference, value or "", "the keyring has no such entry")


def _clean(reference: str, value: str, if_empty: str) -> str:
    value = value.strip()
    if not value:
        raise CredentialError(f"{reference}: {if_empty}")
    if not value.isprintable():
        raise CredentialError(f"{reference}: the value is no header value (control characters)")
    return value


def credential_from(reference: str) -> CredentialSource:
    """Return the source that a reference names: ``env:NAME``, ``file:PATH``, ``command:…`` or ``keyring:SERVICE/USER``.

    Raises:
        CredentialError: if it names none.
    """
    kind, _, rest = reference.partition(":")
    if kind == "env" and rest:
        return EnvironmentCredential(rest)
    if kind == "file" and rest:
        return FileCredential(Path(rest))
    if kind == "command" and rest.split():
        return CommandCredential(rest)
    service, _, user = rest.partition("/")
    if kind == "keyring" and service and user:
        return KeyringCredential(service, user)
    # Not repeated in the message: somebody may have put the credential itself here.
    raise CredentialError("no such credential reference; write env:NAME, file:PATH, command:… or keyring:SERVICE/USER")


class AuthorizedTransport(httpx2.AsyncBaseTransport):
    """Attaches the credential to requests for one origin, and sends all others without.

    The header is taken off the request again afterwards, so that no later reader of it (an exception, a log hook)
    finds it.
    """

    def __init__(self, inner: httpx2.AsyncBaseTransport, source: CredentialSource, *, origin: str) -> None:
        self._inner = inner
        self._source = source
        self._origin = _origin(httpx2.URL(origin))
        self._seen: tuple[bytes, ...] = ()  # the longest first: one may hold another

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if _origin(request.url) != self._origin:
            return await self._inner.handle_async_request(request)
        value = await self._source.authorization()
        self._remember(value.encode(), value.rpartition(" ")[2].encode())
        request.headers["authorization"] = value
        try:
            return await self._inner.handle_async_request(request)
        finally:
            del request.headers["authorization"]

    def redact(self, text: bytes) -> bytes:
        """Return ``text`` without any credential that was attached: a provider may repeat in an error what it was
        sent.
        """
        for secret in self._seen:
            text = text.replace(secret, b"[redacted]")
        return text

    def _remember(self, *secrets: bytes) -> None:
        new = {each for each in secrets if len(each) >= _SHORTEST_SECRET_BYTES}.difference(self._seen)
        if new:
            self._seen = tuple(sorted(new.union(self._seen), key=len, reverse=True))

    async def aclose(self) -> None:
        await self._inner.aclose()


def _origin(url: httpx2.URL) -> tuple[str, str, int | None]:
    return (url.scheme, url.host, url.port)
