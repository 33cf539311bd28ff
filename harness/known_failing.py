"""Findings that are known and not yet repaired: they do not fail a run, and their absence does.

The file is YAML, a list of rules for each scenario:

    lost-create-response: [one-job-per-operation, same-token-on-retry]
"""

import difflib
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import msgspec
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

import harness.rules  # noqa: F401  enters every rule in the book
from harness.expectations import EXPECTATION
from harness.rules.registry import RuleInfo, all_rules
from harness.verdict import Outcome, Verdict, decide

__all__ = ["BadList", "KnownFailing", "excuse", "read", "rules_besides", "stale"]

KnownFailing = Mapping[str, Collection[str]]
"""Rules by scenario."""


class BadList(ValueError):
    """The list is none. The message names its file and says what is wrong, with the likeliest correction."""


def read(path: Path, scenarios: Collection[str]) -> KnownFailing:
    """Read a list of known findings.

    Args:
        scenarios: all that there are; another name is a mistake.

    Raises:
        BadList: it has not the form, or names what there is not.
    """
    try:
        found = YAML(typ="safe").load(path.read_text(encoding="utf-8")) or {}
    except UnicodeDecodeError as error:
        raise BadList(f"{path}: is not UTF-8 text: {error.reason} at byte {error.start}") from None
    except RecursionError:
        raise BadList(f"{path}: not YAML for people: nested too deeply") from None
    except (OSError, YAMLError) as error:
        raise BadList(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    if not isinstance(found, dict) or not all(isinstance(rules, list) for rules in found.values()):
        raise BadList(
            f"{path}: not a list of rules for each scenario, as in 'lost-create-response: [same-token-on-retry]'"
        )
    rules = [rule.id for rule in all_rules()] + [EXPECTATION]
    wrong = [_unknown("scenario", name, scenarios) for name in found if name not in scenarios]
    wrong += [_unknown("rule", rule, rules) for listed in found.values() for rule in listed if rule not in rules]
    if wrong:
        raise BadList(f"{path}: " + "; ".join(wrong))
    return {name: frozenset(listed) for name, listed in found.items()}


def _unknown(kind: str, name: object, known: Collection[str]) -> str:
    near = difflib.get_close_matches(str(name), known, n=1)
    return f"there is no {kind} {name!r}" + (f"; did you mean {near[0]!r}?" if near else "")


@cache
def rules_besides(known: frozenset[str]) -> Sequence[RuleInfo]:
    """Return the rules that a search goes by which is to look for others than those known to be broken.

    Raises:
        BadList: there is no such rule, or there would be none left.
    """
    book = all_rules()
    wrong = [_unknown("rule", rule, [each.id for each in book]) for rule in sorted(known - {each.id for each in book})]
    if wrong:
        raise BadList("; ".join(wrong))
    left = tuple(each for each in book if each.id not in known)
    if not left:
        raise BadList("all rules are said to be known to be broken: there is nothing to look for")
    return left


def excuse(known: KnownFailing, outcome: Outcome) -> Outcome:
    """Return ``outcome`` with its known findings set apart; without others, and without doubts, it passes."""
    listed = known.get(outcome.scenario, ())
    excused = tuple(finding for finding in outcome.findings if finding.rule in listed)
    if not excused:
        return outcome
    left = tuple(finding for finding in outcome.findings if finding.rule not in listed)
    rules = ", ".join(sorted({finding.rule for finding in left or excused}))
    verdict, reason = decide(findings=left, doubts=outcome.doubts)
    if verdict is Verdict.PASS:
        reason = f"known to be broken: {rules}"
    return msgspec.structs.replace(outcome, findings=left, known_failing=excused, verdict=verdict, reason=reason)


def stale(known: KnownFailing, outcomes: Sequence[Outcome]) -> Iterator[str]:
    """What is listed and does not fail any more, where that could be told: the scenario was run, with a verdict."""
    for scenario, rules in known.items():
        runs = [outcome for outcome in outcomes if outcome.scenario == scenario]
        if not runs or any(outcome.verdict is Verdict.UNKNOWN for outcome in runs):
            continue
        broken = {finding.rule for run in runs for finding in (*run.findings, *run.known_failing)}
        for rule in sorted(set(rules) - broken):
            yield f"{scenario} does not break {rule} any more"
