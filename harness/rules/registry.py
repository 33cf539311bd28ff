"""The rule book's binding: what a rule is, how it is entered, and the read-only list of all of them.

A rule is a class with a docstring whose first line says what must hold, entered with :func:`rule`. It overrides the
hooks for the facts it wants to see; each hook is shown a fact once, in order, after the
:class:`~harness.rules.world.World` took it in, and returns findings. One instance lives for one run. A rule counts as
judged only once it has raised :attr:`Rule.judged`, so that nothing passes for want of something to look at.
"""

import difflib
import inspect
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from types import MappingProxyType
from typing import ClassVar, Final, TypeVar

import msgspec

from fake_provider.facts import (
    AnswerEnded,
    Endpoint,
    EventDelivered,
    EventSent,
    Fact,
    JobCreated,
    RequestSent,
)
from harness.history import Claimed, Entry, LeaseNoted, RunEnded, SecretSaid, StateRecorded, SubjectComplained
from harness.rules.views import Exchange
from harness.rules.world import World
from harness.verdict import Finding

__all__ = ["HOOKS", "Needs", "Rule", "RuleError", "RuleInfo", "all_rules", "rule"]


class Needs(StrEnum):
    """What a rule must be able to see before it can judge."""

    WIRE = "wire"  # the provider's and the network's facts: always there
    REPORT = "report"  # the client's claims
    HISTORY = "history"  # the client's notes of what it records, as it does


class RuleError(TypeError):
    """A rule whose shape is wrong. A mistake of the rule's author, raised when its module is imported."""


class Rule:
    """One requirement, judged over one run. Subclasses override hooks; :data:`HOOKS` says which fact reaches which."""

    id: ClassVar[str]
    requirement: ClassVar[str]
    needs: ClassVar[Needs]
    endpoints: ClassVar[frozenset[Endpoint]] = frozenset()
    """The endpoints whose exchanges ``on_request`` and ``on_answer`` are shown; empty for all."""
    reaching: ClassVar[frozenset[str]] = frozenset()
    """The local states of which ``on_recorded`` is shown transitions and ``on_claimed`` claims; empty for all."""
    strays: ClassVar[bool] = False
    """Whether these hooks are also shown exchanges that belong to no operation, or that left for another origin."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.judged = 0
        self._reported: set[Hashable] = set()

    def first_time(self, *breach: Hashable) -> bool:
        """Whether this breach is new. One breach gives one finding, however many facts show it again."""
        if breach in self._reported:
            return False
        self._reported.add(breach)
        return True

    def finding(self, message: str, *entries: Entry | None) -> Finding:
        """A finding proved by ``entries``. The message says what happened, and what should have."""
        facts = tuple(sorted({entry.seq for entry in entries if entry is not None}))
        return Finding(rule=self.id, requirement=self.requirement, message=message, facts=facts)

    def on_request(self, exchange: Exchange, /) -> Iterable[Finding]:
        """A client sent a request of its own (never a copy that the network made)."""
        raise NotImplementedError

    def on_answer(self, exchange: Exchange, /) -> Iterable[Finding]:
        """Such a request's exchange ended."""
        raise NotImplementedError

    def on_job_created(self, entry: Entry, fact: JobCreated, /) -> Iterable[Finding]:
        raise NotImplementedError

    def on_event_sent(self, entry: Entry, fact: EventSent, /) -> Iterable[Finding]:
        raise NotImplementedError

    def on_event_delivered(self, entry: Entry, fact: EventDelivered, /) -> Iterable[Finding]:
        raise NotImplementedError

    def on_recorded(self, entry: Entry, fact: StateRecorded, /) -> Iterable[Finding]:
        raise NotImplementedError

    def on_lease(self, entry: Entry, fact: LeaseNoted, /) -> Iterable[Finding]:
        raise NotImplementedError

    def on_claimed(self, entry: Entry, fact: Claimed, /) -> Iterable[Finding]:
        raise NotImplementedError

    def on_secret(self, entry: Entry, fact: SecretSaid, /) -> Iterable[Finding]:
        raise NotImplementedError

    def on_complaint(self, entry: Entry, fact: SubjectComplained, /) -> Iterable[Finding]:
        raise NotImplementedError

    def at_end(self) -> Iterable[Finding]:
        """The history is complete."""
        raise NotImplementedError


HOOKS: Final[Mapping[str, type[Fact]]] = MappingProxyType(
    {
        "on_request": RequestSent,
        "on_answer": AnswerEnded,
        "on_job_created": JobCreated,
        "on_event_sent": EventSent,
        "on_event_delivered": EventDelivered,
        "on_recorded": StateRecorded,
        "on_lease": LeaseNoted,
        "on_claimed": Claimed,
        "on_secret": SecretSaid,
        "on_complaint": SubjectComplained,
        "at_end": RunEnded,
    }
)
"""Every hook a rule may override, and the fact that reaches it."""

EXCHANGE_HOOKS: Final = frozenset({"on_request", "on_answer"})


class RuleInfo(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A rule as entered in the book."""

    id: str
    requirement: str
    needs: Needs
    summary: str  # the first line of the docstring
    doc: str  # the whole docstring
    cls: type[Rule]
    hooks: tuple[str, ...]  # those it overrides

    @property
    def listens(self) -> tuple[type[Fact], ...]:
        """The facts it is shown."""
        return tuple(fact for hook, fact in HOOKS.items() if hook in self.hooks)


_BOOK: Final[dict[str, RuleInfo]] = {}
_ID: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)+")
_REQUIREMENT: Final = re.compile(r"W(10|[1-9])\.[0-9]+")
_R = TypeVar("_R", bound=type[Rule])


def rule(*, id: str, requirement: str, needs: Needs) -> Callable[[_R], _R]:  # noqa: A002  the word rules are listed by
    """Enter a :class:`Rule` class in the book.

    Args:
        id: kebab-case, saying what must hold.
        requirement: the number of the line of the requirements it judges, such as ``W3.4``.
        needs: what it must be able to see.

    Raises:
        RuleError: if the id is taken or malformed, or the class has not the shape of a rule.
    """

    def enter(cls: _R) -> _R:
        _refuse_what_is_no_rule(id, cls)
        if id in _BOOK:
            raise RuleError(f"rule {id!r} is entered twice: by {_BOOK[id].cls.__qualname__} and by {cls.__qualname__}")
        if _ID.fullmatch(id) is None:
            raise RuleError(f"rule {id!r}: an id is kebab-case of two words or more, saying what must hold")
        if _REQUIREMENT.fullmatch(requirement) is None:
            raise RuleError(f"rule {id!r}: {requirement!r} is no requirement; write it like 'W3.4'")
        doc = inspect.cleandoc(cls.__doc__ or "")
        if not doc or cls.__doc__ is Rule.__doc__:
            raise RuleError(f"rule {id!r}: {cls.__qualname__} needs a docstring whose first line says what must hold")
        _refuse_unknown_hooks(id, cls)
        hooks = tuple(hook for hook in HOOKS if getattr(cls, hook) is not getattr(Rule, hook))
        if not hooks:
            raise RuleError(f"rule {id!r}: {cls.__qualname__} looks at nothing; override one of {', '.join(HOOKS)}")
        cls.id, cls.requirement, cls.needs = id, requirement, needs
        summary = " ".join(doc.split("\n\n", 1)[0].split())
        _BOOK[id] = RuleInfo(
            id=id, requirement=requirement, needs=needs, summary=summary, doc=doc, cls=cls, hooks=hooks
        )
        return cls

    return enter


def _refuse_what_is_no_rule(rule_id: str, cls: object) -> None:
    if not (inspect.isclass(cls) and issubclass(cls, Rule)):
        raise RuleError(f"rule {rule_id!r}: {cls!r} is no subclass of Rule")


def _refuse_unknown_hooks(rule_id: str, cls: type[Rule]) -> None:
    for name in vars(cls):
        if name.startswith("on_") and name not in HOOKS:
            near = difflib.get_close_matches(name, HOOKS, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise RuleError(f"rule {rule_id!r}: {name} is no hook, one of {', '.join(HOOKS)}{hint}")


def all_rules() -> Sequence[RuleInfo]:
    """Every rule in the book, by requirement and id. Read-only; importing the package ``harness.rules`` fills the
    book.
    """
    return _sorted(tuple(_BOOK.values()))


@lru_cache(maxsize=8)  # asked for by every run
def _sorted(book: tuple[RuleInfo, ...]) -> tuple[RuleInfo, ...]:
    return tuple(sorted(book, key=_by_requirement))


def _by_requirement(info: RuleInfo) -> tuple[int, int, str]:
    section, line = info.requirement[1:].split(".")
    return int(section), int(line), info.id
