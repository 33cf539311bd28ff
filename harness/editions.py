"""Rule-set editions: what `--rules N` judges by, and the scenarios it runs when none are named.

An edition that was released never gains a rule or a scenario, so that an upgrade of jobsworth cannot turn a pipeline
red that asked for it. A rule in it may be corrected to find less, never to find more.
"""

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

import msgspec

import harness.rules  # noqa: F401  enters every rule in the book
from harness.rules.registry import RuleInfo, all_rules

__all__ = ["EDITIONS", "Edition", "UnknownEdition", "as_it_is_now", "edition", "rules_of"]

_HOME: Final = Path(__file__).parent / "rules" / "editions"


class UnknownEdition(ValueError):
    """There is no edition of that number. The message says which there are."""


class Edition(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One edition: ids of rules, names of scenarios of the catalogue, both sorted."""

    rules: tuple[str, ...]
    scenarios: tuple[str, ...]


EDITIONS: Final = tuple(sorted(int(path.stem) for path in _HOME.glob("*.json")))
"""The numbers of all editions."""


@cache
def edition(number: int) -> Edition:
    """Return an edition.

    Raises:
        UnknownEdition: there is none of that number.
    """
    if number not in EDITIONS:
        raise UnknownEdition(f"there is no edition {number} of the rules; one of {', '.join(map(str, EDITIONS))}")
    return msgspec.json.decode((_HOME / f"{number}.json").read_bytes(), type=Edition)


@cache
def rules_of(number: int | None) -> Sequence[RuleInfo]:
    """Return the rules of an edition, or all of them for None."""
    if number is None:
        return all_rules()
    named = set(edition(number).rules)
    return tuple(rule for rule in all_rules() if rule.id in named)


def as_it_is_now() -> str:
    """An edition of all rules and scenarios that there are, as its file holds it."""
    from scenarios.loading import load_catalogue

    rules, scenarios = sorted(rule.id for rule in all_rules()), sorted(load_catalogue())
    return json.dumps({"rules": rules, "scenarios": scenarios}, indent=2) + "\n"


if __name__ == "__main__":
    # The newest edition grows until it is released; after that a new number begins.
    (_HOME / f"{EDITIONS[-1] if EDITIONS else 1}.json").write_text(as_it_is_now(), encoding="utf-8")
