"""What the author of a *patched* subject needs: unmodified Python code on httpx or httpx2, run in virtual time.

A factory marked with :func:`patched` is called once and returns the client. Its methods may be plain functions that
block for as long as they like, or coroutine functions. They use ``time.sleep``, ``time.time``, ``asyncio.sleep`` and
their HTTP library as they always do. How that works is in ``harness.subjects.patched``; an example is in
``docs/simulated-and-patched.md``.
"""

from collections.abc import Callable, Collection, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar, runtime_checkable

from fake_provider.dialects import DIALECTS
from harness.subject import Capability

__all__ = ["Marks", "PatchedClient", "PatchedFactory", "PatchedHost", "marks_of", "patched"]

_MARKS: Final = "__jobsworth_patched__"
_CAPABILITIES: Final = ("cancel", "decide", "reconcile", "webhooks")


@dataclass(frozen=True, kw_only=True)
class PatchedHost:
    """What a patched client is given: where the provider is, and the terms. The rest is its own."""

    worker: str
    base_url: str  # scheme and authority, without a path; only requests made inside the run get there
    authorization: str  # the Authorization header value, for ``base_url``'s origin only
    contract: Mapping[str, Any]  # a fake_provider.contract.Contract as JSON
    timing: Mapping[str, float]  # a scenarios.model.Timing as JSON
    webhook_secrets: Sequence[str]  # "whsec_…", newest first
    disk: MutableMapping[str, Any]  # a place for what is to be kept

    @property
    def token(self) -> str:
        """The credential without its scheme, as SDKs want it."""
        return self.authorization.rpartition(" ")[2]


@runtime_checkable
class PatchedClient(Protocol):
    """The client under test. Either method may be ``async``.

    ``submit`` may return at once or see the operation through: the harness goes on meanwhile. It raises
    ``harness.subject.Refused`` for what it will not do. ``report`` says where each operation stands
    (``harness.subject.Claim``). Optional, and announced by ``capabilities``: ``cancel(operation, who, why)``,
    ``reconcile(operation, who, why)``, ``webhook(headers, body) -> status``. Also optional: ``run()``, started with the
    client.
    """

    def submit(self, operation: str, request: Mapping[str, Any]) -> Any: ...

    def report(self) -> Any: ...


PatchedFactory = Callable[[PatchedHost], PatchedClient]


@dataclass(frozen=True, kw_only=True)
class Marks:
    """What :func:`patched` says of a factory."""

    dialect: str
    capabilities: frozenset[Capability]


F = TypeVar("F", bound=PatchedFactory)


def patched(*, dialect: str = "jobs", capabilities: Collection[Capability] = ()) -> Callable[[F], F]:
    """Mark a factory of a patched client.

    Args:
        dialect: the wire format its provider speaks.
        capabilities: what the client can do beyond ``submit`` and ``report``: cancel, decide, reconcile, webhooks.

    Raises:
        ValueError: there is no such capability or dialect. A misspelt one would silently leave scenarios out.
    """
    given = (capabilities,) if isinstance(capabilities, str) else tuple(capabilities)
    unknown = [name for name in given if name not in _CAPABILITIES]
    if unknown or isinstance(capabilities, str):
        raise ValueError(f"capabilities are a list of {', '.join(_CAPABILITIES)}; found {unknown or capabilities!r}")
    if dialect not in DIALECTS:
        raise ValueError(f"there is no dialect {dialect!r}; one of {', '.join(sorted(DIALECTS))}")

    def mark(factory: F) -> F:
        setattr(factory, _MARKS, Marks(dialect=dialect, capabilities=frozenset(capabilities)))
        return factory

    return mark


def marks_of(factory: object) -> Marks | None:
    """Return what was said of a factory, None if it is not of a patched client."""
    marks = getattr(factory, _MARKS, None)
    return marks if isinstance(marks, Marks) else None
