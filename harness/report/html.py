"""Reports for a browser: one page that needs nothing else, for any number of runs.

The page holds the table of runs as HTML and each run as JSON, which is read and drawn only when the run is looked at.
What a client under test says is not trusted: Jinja escapes it in the table, in JSON no character of it can end the
element it is in, the page's script puts it on the screen as text only, and the Content-Security-Policy allows the
page's own script and style, by their digests, and nothing else.
"""

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, NamedTuple

import jinja2
import msgspec

from fake_provider.facts import FaultStruck, JobCreated
from harness.history import Entry, History
from harness.report.machine import Report
from harness.report.story import Line, Mark, tell
from harness.report.terminal import clean
from harness.report.timeline import Drawn, draw
from harness.report.words import describe
from harness.verdict import Finding, Outcome, Verdict, merge

__all__ = ["FILE_NAME", "MOST_BYTES", "Shown", "page", "write"]

FILE_NAME: Final = "index.html"

MOST_BYTES: Final = 256 * 1024
"""Of one run in the page. An ordinary run takes 10 to 40 kB; a client that loops could fill a disk."""


class _Limits(NamedTuple):
    """How much of one run is shown."""

    facts: int
    characters: int  # of one text
    log_lines: int  # the last ones of each log


_LIMITS: Final = (_Limits(1_500, 500, 30), _Limits(600, 500, 30), _Limits(200, 300, 20), _Limits(60, 100, 5))
"""Tried in this order until the run fits."""

_MOST_CHARACTERS: Final = 500  # of one text in the table
_MOST_FINDINGS: Final = 40  # of one run: more prove no more
_MOST_PROOFS: Final = 24  # of one finding
_MOST_LOGS: Final = 8  # of one run

_URGENCY: Final = (Verdict.FAIL, Verdict.UNKNOWN, Verdict.PASS)  # the order of rows
_SCRIPTS: Final = ("words.js", "filters.js", "drawing.js", "run.js", "main.js")
_STYLES: Final = ("page.css", "run.css")


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A run as it comes into the page."""

    subject: str
    outcome: Outcome
    history: History
    summary: str = ""  # of the scenario
    logs: Mapping[str, str] = field(default_factory=dict)  # what each worker's process wrote to standard error


@dataclass(frozen=True, kw_only=True)
class _Column:
    """Of the table: a mode, or a subject in a mode if the page shows several subjects."""

    subject: str
    mode: str
    title: str


@dataclass(kw_only=True)
class _Row:
    """Of the table: a scenario."""

    scenario: str
    summary: str
    cells: dict[str, list[dict[str, Any]]] = field(default_factory=dict)  # by the title of the column

    @property
    def verdict(self) -> Verdict:
        return merge(cell["verdict"] for cells in self.cells.values() for cell in cells)


def page(runs: Sequence[Shown], report: Report, *, notes: Mapping[str, str] | None = None) -> str:
    """Return the page.

    Args:
        runs: in the order in which they are to be listed.
        report: what they come to.
        notes: what else is worth knowing of the whole, as names and values.
    """
    columns = _columns(runs)
    titles = {(column.subject, column.mode): column.title for column in columns}
    rows: dict[str, _Row] = {}
    for number, run in enumerate(runs):
        outcome = run.outcome
        row = rows.setdefault(outcome.scenario, _Row(scenario=_short(outcome.scenario), summary=_short(run.summary)))
        row.cells.setdefault(titles[run.subject, outcome.mode], []).append(_cell(number, run))
    script, style = _joined(_SCRIPTS), _joined(_STYLES)
    return (
        _environment()
        .get_template("page.html")
        .render(
            report=msgspec.to_builtins(report),
            reason=_short(report.reason),
            subject=_short(report.subject),
            left_out=_left_out(report),
            notes={_short(name): _short(value) for name, value in (notes or {}).items()},
            columns=columns,
            rows=sorted(rows.values(), key=lambda row: _URGENCY.index(row.verdict)),
            choices=_choices(runs),
            counts=_counts(runs),
            index=_embedded([_indexed(run, run_id) for run, run_id in zip(runs, _ids(runs), strict=True)]),
            runs=[_run(run) for run in runs],
            script=script,
            style=style,
            script_digest=_digest(script),
            style_digest=_digest(style),
        )
    )


def write(folder: Path, content: str) -> Path:
    """Put the page into ``folder``, which is made if need be, and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / FILE_NAME
    path.write_text(content, encoding="utf-8", newline="\n")
    return path


# -- the table


def _columns(runs: Sequence[Shown]) -> list[_Column]:
    pairs = list(dict.fromkeys((run.subject, run.outcome.mode) for run in runs))
    subjects, modes = ({pair[place] for pair in pairs} for place in (0, 1))

    def title(subject: str, mode: str) -> str:
        if len(subjects) == 1:
            return mode
        return f"{subject}, {mode}" if len(modes) > 1 else subject

    return [_Column(subject=subject, mode=mode, title=_short(title(subject, mode))) for subject, mode in pairs]


def _cell(number: int, run: Shown) -> dict[str, Any]:
    outcome = run.outcome
    return {
        "number": number,
        "verdict": outcome.verdict.value,
        "rules": list(dict.fromkeys(_short(finding.rule) for finding in outcome.findings)),
        "reason": _short(outcome.reason),
        "struck": outcome.faults_struck,
        "planned": outcome.faults_planned,
    }


def _ids(runs: Sequence[Shown]) -> list[str]:
    """What a run is called in a link: the scenario and the mode, and as much more as tells it from the others."""
    several = len({run.subject for run in runs}) > 1
    seen: dict[str, int] = {}
    ids = []
    for run in runs:
        name = _short("/".join([run.outcome.scenario, run.outcome.mode, *([run.subject] if several else [])]))
        seen[name] = seen.get(name, 0) + 1
        ids.append(name if seen[name] == 1 else f"{name}/{seen[name]}")
    return ids


def _indexed(run: Shown, run_id: str) -> dict[str, Any]:
    """What filters look at before a run is read."""
    outcome = run.outcome
    return {
        "id": run_id,
        "verdict": outcome.verdict.value,
        "rules": _rules(run),
        "faults": _faults(run),
        "workers": _workers(run),
        "text": " ".join(_short(text) for text in (outcome.scenario, run.summary, outcome.reason)).lower(),
    }


def _rules(run: Shown) -> list[str]:
    return sorted({_short(finding.rule) for finding in run.outcome.findings})


def _faults(run: Shown) -> list[str]:
    return sorted({_short(entry.fact.kind) for entry in run.history if isinstance(entry.fact, FaultStruck)})


def _workers(run: Shown) -> list[str]:
    names = {getattr(entry.fact, "worker", None) for entry in run.history}
    return sorted(_short(name) for name in names if name is not None)


def _choices(runs: Sequence[Shown]) -> dict[str, list[str]]:
    def all_of(what: Iterable[list[str]]) -> list[str]:
        return sorted({one for some in what for one in some})

    return {
        "rule": all_of(map(_rules, runs)),
        "fault": all_of(map(_faults, runs)),
        "worker": all_of(map(_workers, runs)),
    }


def _counts(runs: Sequence[Shown]) -> dict[str, int]:
    return {verdict.value: sum(run.outcome.verdict is verdict for run in runs) for verdict in Verdict}


def _left_out(report: Report) -> dict[str, list[str]]:
    """The scenarios that do not apply to the client, by reason."""
    by_reason: dict[str, list[str]] = {}
    for each in report.left_out:
        by_reason.setdefault(_short(each.reason), []).append(_short(each.scenario))
    return by_reason


# -- a run


def _run(run: Shown) -> str:
    """A run as JSON, with as many of its facts as fit."""
    picture = _Picture(run)
    text = ""
    for limits in _LIMITS:
        text = _embedded(picture.model(limits), limits.characters)
        if len(text.encode()) <= MOST_BYTES:
            break
    return text


class _Picture:
    """A run, told and drawn once, of which more or less can be shown."""

    def __init__(self, run: Shown) -> None:
        self._run = run
        self._entries = list(run.history)
        self._findings = run.outcome.findings[:_MOST_FINDINGS]
        self._story = tell(self._entries, self._findings)
        self._timeline = draw(self._entries)

    def model(self, limits: _Limits) -> dict[str, Any]:
        """What the page's script reads."""
        outcome = self._run.outcome
        kept = _kept(
            self._entries, {seq for finding in self._findings for seq in finding.facts[:_MOST_PROOFS]}, limits.facts
        )
        drawn = self._timeline.drawn
        return {
            "subject": self._run.subject,
            "summary": self._run.summary,
            "outcome": {
                "scenario": outcome.scenario,
                "mode": outcome.mode,
                "seed": outcome.seed,
                "verdict": outcome.verdict.value,
                "reason": outcome.reason,
                "rules_judged": outcome.rules_judged,
                "faults_planned": outcome.faults_planned,
                "faults_struck": outcome.faults_struck,
                "reproduce": outcome.reproduce,
                "findings": [_finding(finding) for finding in self._findings],
            },
            "idle": _idle(outcome),
            "logs": {
                name: text.splitlines()[-limits.log_lines :]
                for name, text in list(self._run.logs.items())[:_MOST_LOGS]
                if text.strip()
            },
            "findings_in_all": len(outcome.findings),
            "facts_in_all": len(self._entries),
            "lanes": msgspec.to_builtins(self._timeline.lanes),
            "spans": [
                msgspec.to_builtins(span)
                for span in self._timeline.spans
                if span.since in kept or (span.until is not None and span.until in kept)
            ],
            "facts": [_fact(entry, drawn[entry.seq]) for entry in self._entries if entry.seq in kept],
            "story": list(self._lines(kept)),
        }

    def _lines(self, kept: set[int]) -> Iterator[dict[str, Any]]:
        """The story, as far as its facts are there. A line that pins a finding says which, by its place."""
        unpinned = list(enumerate(self._findings))
        for line in self._story:
            told = {"at": line.at, "actor": line.actor, "text": line.text, "mark": line.mark.value}
            facts = [seq for seq in line.facts if seq in kept]
            if line.mark is Mark.FINDING:
                place = next(place for place in unpinned if _is_told_by(place[1], line))
                unpinned.remove(place)
                yield {**told, "finding": place[0], "facts": []}
            elif facts:
                yield {**told, "facts": facts}


def _is_told_by(finding: Finding, line: Line) -> bool:
    return (finding.rule, finding.facts) == (line.actor, line.facts) and line.text.endswith(finding.message)


def _finding(finding: Finding) -> dict[str, Any]:
    return {**msgspec.to_builtins(finding), "facts": list(finding.facts[:_MOST_PROOFS])}


def _idle(outcome: Outcome) -> dict[str, list[str]]:
    """The rules that had nothing to judge, by what they judge from."""
    idle: dict[str, list[str]] = {}
    for rule in outcome.rules_not_judged:
        idle.setdefault(str(rule.needs), []).append(rule.rule)
    return idle


def _kept(entries: Sequence[Entry], cited: set[int], most: int) -> set[int]:
    """Which facts come into the page: all, or those that matter and the first and last of the others."""
    if len(entries) <= most:
        return {entry.seq for entry in entries}
    telling = [entry.seq for entry in entries if isinstance(entry.fact, FaultStruck | JobCreated)]
    kept = {*list(cited)[:most], *telling[: most // 4]}
    room = max(most - len(kept), 2)
    beginning = room * 2 // 3
    return kept | set(range(beginning)) | set(range(len(entries) - (room - beginning), len(entries)))


def _fact(entry: Entry, drawn: Drawn) -> dict[str, Any]:
    sentence = describe(entry.fact)
    return {
        "seq": entry.seq,
        "at": entry.at,
        "actor": sentence.actor,
        "text": sentence.text,
        **msgspec.to_builtins(drawn),
        "raw": msgspec.to_builtins(entry.fact),
    }


# -- safe to embed


def _short(text: str, most: int = _MOST_CHARACTERS) -> str:
    """``text`` in the form in which it is shown: of bounded length, and with control characters written out."""
    return clean(text if len(text) <= most else f"{text[:most]}…")


def _cleaned(value: Any, most: int) -> Any:
    match value:
        case str():
            return _short(value, most)
        case dict():
            return {_short(str(key), most): _cleaned(item, most) for key, item in value.items()}
        case list() | tuple():
            return [_cleaned(item, most) for item in value]
        case _:
            return value


_UNSAFE: Final = {ord(char): f"\\u{ord(char):04x}" for char in "<>&'\u2028\u2029"}


def _embedded(value: Any, most: int = _MOST_CHARACTERS) -> str:
    """``value`` as JSON that can stand in a script element: nothing in it ends the element or begins a
    comment. The template takes it as it is.
    """
    text = json.dumps(_cleaned(value, most), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.translate(_UNSAFE)


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _joined(names: Sequence[str]) -> str:
    folder = files("harness.report") / "page"
    return "\n".join((folder / name).read_text(encoding="utf-8") for name in names)


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader("harness.report", "page"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
