"""Shows a history to the rules, one entry at a time, and sums up what they found.

A rule that raises is *crashed*: it is shown nothing more, its name and error are kept (a run with a crashed rule
proves nothing, so its verdict is unknown), and the others go on.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec

from fake_provider.facts import AnswerEnded, Endpoint, RequestSent
from harness.history import Claimed, Entry, StateRecorded
from harness.rules.chronicle import Chronicle
from harness.rules.registry import EXCHANGE_HOOKS, HOOKS, Rule, RuleInfo, all_rules
from harness.verdict import Finding, NotJudged

__all__ = ["Judge", "Judgement"]

WORLD: Final = "(the joined facts)"
"""Stands for the rule's id where it was not a rule that crashed but the world that all of them read."""

_Hook = Callable[..., Iterable[Finding]]
_Key = type | tuple[type, Endpoint, bool] | tuple[type, str | None]


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """What the rules came to."""

    findings: tuple[Finding, ...]  # in the order of the facts that prove them
    judged: tuple[str, ...]  # rules that had something to evaluate
    not_judged: tuple[NotJudged, ...]  # rules that had not
    crashed: tuple[tuple[str, str], ...]  # rule and error


class Judge:
    """The rules at work on one run. Work per entry does not grow with the history."""

    def __init__(self, rules: Sequence[RuleInfo] | None = None) -> None:
        """Args:
        rules: those to judge by; all of them by default.
        """
        self.world = Chronicle()
        self._findings: list[Finding] = []
        self._crashed: dict[str, str] = {}
        book = all_rules() if rules is None else tuple(rules)
        self._rules = [info.cls(self.world) for info in book]
        self._seats = _seats(book)
        self._table: dict[_Key, list[tuple[Rule, _Hook]]] = {}

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was found so far."""
        return tuple(self._findings)

    @property
    def crashed(self) -> tuple[tuple[str, str], ...]:
        """The rules that crashed so far, each with its error."""
        return tuple(self._crashed.items())

    def _at(self, key: _Key) -> list[tuple[Rule, _Hook]]:
        """The hooks to be shown a fact of that kind, bound to the rules of this run at the first such fact."""
        hooks = self._table.get(key)
        if hooks is None:
            seats = self._seats_at(key)
            hooks = self._table[key] = [
                (self._rules[number], getattr(self._rules[number], hook)) for number, hook in seats
            ]
        return hooks

    def _seats_at(self, key: _Key) -> Sequence[tuple[int, str]]:
        if not isinstance(key, tuple) or len(key) != 2:
            return self._seats.get(key, ())
        fact, state = key
        return [
            seat
            for seat in self._seats.get(fact, ())
            if not (reaching := self._rules[seat[0]].reaching) or state in reaching
        ]

    def observe(self, entry: Entry) -> None:
        """Take in the next entry of the history."""
        if WORLD in self._crashed:
            return
        try:
            self.world.take(entry)
        except Exception as error:  # noqa: BLE001  whatever it is, the verdict must say so
            self._crashed[WORLD] = f"{type(error).__name__}: {error} (at #{entry.seq})"
            return
        fact = entry.fact
        if isinstance(fact, RequestSent | AnswerEnded):
            exchange = self.world.exchanges.get(fact.exchange)
            if exchange is None or exchange.request.copy_of is not None:
                return
            self._show((type(fact), fact.endpoint, exchange.stray), exchange)
        elif type(fact) in self._seats and type(fact) is not HOOKS["at_end"]:
            if self.world.blurred and getattr(fact, "operation", None) in self.world.blurred:
                return
            key: _Key = type(fact)
            if isinstance(fact, StateRecorded):
                key = (StateRecorded, fact.after if fact.after != fact.before else None)
            elif isinstance(fact, Claimed):
                key = (Claimed, fact.state)
            self._show(key, entry, fact)

    def _show(self, key: _Key, *what: Any) -> None:
        for each, hook in self._at(key):
            if each.id in self._crashed:
                continue
            try:
                self._findings.extend(hook(*what))
            except Exception as error:  # noqa: BLE001  a crashed rule is reported, and the others go on
                self._crashed[each.id] = f"{type(error).__name__}: {error}"

    def conclude(self) -> Judgement:
        """Sum up. Call once, after the last entry."""
        if WORLD not in self._crashed:
            self.world.leave_out_blurred()
            self._show(HOOKS["at_end"])
        return Judgement(
            findings=tuple(sorted(self._findings, key=lambda finding: finding.facts[-1:])),
            judged=tuple(each.id for each in self._rules if each.judged and each.id not in self._crashed),
            not_judged=tuple(
                NotJudged(rule=each.id, needs=each.needs.value)
                for each in self._rules
                if not each.judged and each.id not in self._crashed
            ),
            crashed=tuple(self._crashed.items()),
        )


@lru_cache(maxsize=8)  # in practice there is one book
def _seats(book: tuple[RuleInfo, ...]) -> Mapping[_Key, Sequence[tuple[int, str]]]:
    """Which hooks of which rules, by their place in the book, are shown a fact of which kind."""
    seats: dict[_Key, list[tuple[int, str]]] = {}
    for number, info in enumerate(book):
        for hook in info.hooks:
            keys: Iterable[_Key] = (HOOKS[hook],)
            if hook in EXCHANGE_HOOKS:
                places, strays = info.cls.endpoints or Endpoint, info.cls.strays
                keys = [
                    (HOOKS[hook], place, stray) for place in places for stray in (False, True) if strays or not stray
                ]
            for key in keys:
                seats.setdefault(key, []).append((number, hook))
    return seats
