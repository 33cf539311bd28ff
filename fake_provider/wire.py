"""What crosses the wire, in the plainest form: a request and an answer, without sockets or HTTP libraries.

An :class:`Answer` carries, beside its bytes, what those bytes mean (job, state, Retry-After …), so that facts can be
recorded without reading the bytes back. Whoever changes the bytes so that they mean something else says so here too.
"""

from collections.abc import Mapping

import msgspec

__all__ = ["ELSEWHERE", "MAX_BODY_BYTES", "Answer", "Request"]

ELSEWHERE = "http://elsewhere.test"
"""Where redirects to another origin lead, unless a shell has a real place for it."""

MAX_BODY_BYTES = 1 << 20
"""Larger request bodies are answered 413: a job is described in far less, and a fake must not fill up by accident."""


class Request(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One request as it reached the provider's door."""

    method: str
    path: str  # without the query, still percent-encoded
    query: str  # without the question mark, still percent-encoded
    headers: Mapping[str, str]  # names in lower case
    body: bytes
    base_url: str  # scheme and authority by which the client came, and a session's path; no slash at the end
    elsewhere: bool = False  # it came to another origin than the provider's
    elsewhere_url: str = ELSEWHERE  # an origin that is not the provider's, for redirects to lead to


class Answer(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One answer, and what it means."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    job: str | None = None
    jobs: tuple[str, ...] = ()  # all of them, where the answer names several
    operation: str | None = None
    remote_state: str | None = None  # in the dialect's words
    canonical_state: str | None = None
    progress: int | None = None
    retry_after_s: float | None = None
    retry_after_is_date: bool = False
    replayed: bool = False
    problem: str | None = None
    request_id: str | None = None
    from_fault: bool = False

    def header(self, name: str) -> str | None:
        """Return the first header of that name (any case), or None."""
        wanted = name.lower()
        for key, value in self.headers:
            if key.lower() == wanted:
                return value
        return None

    def with_header(self, name: str, value: str | None) -> "Answer":
        """Return the answer with that header set, or without it where ``value`` is None."""
        wanted = name.lower()
        kept = tuple(pair for pair in self.headers if pair[0].lower() != wanted)
        return msgspec.structs.replace(self, headers=kept if value is None else (*kept, (name, value)))
