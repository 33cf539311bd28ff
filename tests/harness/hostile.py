"""Runs made up for the page, and among them one in which every kind of fact is hostile wherever it takes text."""

import enum
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import msgspec

from harness.history import AnyFact, History, RunEnded, RunStarted
from harness.report.html import Shown
from harness.verdict import Finding, NotJudged, Outcome, Verdict

HOSTILE = (
    "</script><script>window.broken = 1</script><!-- <script> ]]> "
    "<img src=x onerror='window.broken = 1'> \" ' & {{ 7 * 7 }} ${window.broken = 1} \u2028 \u202e \x00 \x1b[2J \ud800"
)
"""Everything at once: ends of elements, comments, attributes, templates, controls and half a character."""


def fact_of(kind: type[msgspec.Struct], text: str = HOSTILE, number: int = 1) -> AnyFact:
    """A fact of a kind, with ``text`` wherever it takes any and ``number`` wherever it takes one."""
    hints = get_type_hints(kind)
    return kind(**{field.name: _value(hints[field.name], text, number) for field in msgspec.structs.fields(kind)})  # type: ignore[return-value]


def _value(hint: Any, text: str, number: int) -> Any:
    if get_origin(hint) is UnionType or type(hint) is UnionType:
        return _value(next(one for one in get_args(hint) if one is not type(None)), text, number)
    if get_origin(hint) is dict:
        return {text: _value(get_args(hint)[1], text, number)}
    if get_origin(hint) is tuple:
        return (_value(get_args(hint)[0], text, number),)
    if hint is Any:
        return [text]
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return next(iter(hint))
    return text if hint is str else hint(number)


def hostile_history(text: str = HOSTILE) -> History:
    """Every kind of fact once, in an order in which they could be."""
    history = History(lambda: float(len(history)))
    kinds = [kind for kind in get_args(AnyFact) if kind not in {RunStarted, RunEnded}]
    for kind in (RunStarted, *kinds, RunEnded):
        history.record(fact_of(kind, text))
    return history


def shown(history: History, *, findings: tuple[Finding, ...] = (), text: str = "a-story", **rest: Any) -> Shown:
    """A run with that history; failed, if there are findings."""
    outcome = Outcome(
        scenario=text,
        mode="simulated",
        seed=0,
        verdict=Verdict.FAIL if findings else Verdict.PASS,
        reason=f"broken: {text}" if findings else text,
        rules_judged=3,
        rules_not_judged=(NotJudged(rule=text, needs="wire"),),
        faults_planned=1,
        faults_struck=1,
        findings=findings,
        history_sha256="",
        reproduce=text,
    )
    return Shown(**{"subject": "a-client", "outcome": outcome, "history": history, "summary": text, **rest})


def hostile_run() -> Shown:
    """A failed run in which nobody means well."""
    history = hostile_history()
    findings = tuple(
        Finding(rule=HOSTILE, requirement=HOSTILE, message=f"{HOSTILE} (#{seq})", facts=(seq,)) for seq in (1, 3)
    )
    return shown(history, findings=findings, text=HOSTILE, subject=HOSTILE, logs={HOSTILE: f"{HOSTILE}\n{HOSTILE}"})
