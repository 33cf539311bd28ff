"""Where in a request a secret stands that belongs into its Authorization header alone. Pure.

URLs are written into the logs of every server and proxy on the way, and traces are handed on to third parties. A fact
says where a secret stood, and never what it is.
"""

from collections.abc import Iterable
from typing import Final
from urllib.parse import unquote

from fake_provider.wire import Request

__all__ = ["Custody"]

_SHORTEST: Final = 8
"""Characters. What is shorter is no secret, and would be found in any text."""

_SHORTEST_UNKNOWN: Final = 20
"""Of what only stands in a request's own header: a placeholder, such as a product's name, may stand elsewhere too."""


class Custody:
    """Knows the secrets that the clients were given.

    Args:
        secrets: as they were given: a whole Authorization header counts without its scheme.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        self._secrets = tuple(each for each in map(_bare, secrets) if len(each) >= _SHORTEST)

    def exposed(self, request: Request) -> tuple[str, ...]:
        """Return the places, such as ``query``, ``path``, ``body`` or ``header baggage``. Whatever a request bears in
        its Authorization header counts as a secret, too.
        """
        secrets = self._in(request)
        return tuple(dict.fromkeys(place for secret in secrets for place in _places(secret, request)))

    def path(self, request: Request) -> str:
        """Return the request's path without the secrets in it."""
        path = request.path
        for secret in self._in(request):
            if secret in unquote(path):
                path = unquote(path).replace(secret, "[redacted]")
        return path

    def _in(self, request: Request) -> tuple[str, ...]:
        own = _bare(request.headers.get("authorization", ""))
        if len(own) < _SHORTEST_UNKNOWN or own in self._secrets:
            return self._secrets
        return (*self._secrets, own)


def _bare(secret: str) -> str:
    return secret.rpartition(" ")[2]


def _places(secret: str, request: Request) -> Iterable[str]:
    if secret in request.query or ("%" in request.query and secret in unquote(request.query)):
        yield "query"
    if secret in request.path or ("%" in request.path and secret in unquote(request.path)):
        yield "path"
    if request.body and secret.encode() in request.body:
        yield "body"
    for name, value in request.headers.items():
        if name != "authorization" and secret in value:
            yield f"header {name}"
