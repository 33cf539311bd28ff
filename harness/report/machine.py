"""Reports for machines: versioned JSON with a published schema (``docs/report.schema.json``)."""

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from harness.verdict import Finding, LeftOut, Outcome, SweptStory, Verdict, merge

if TYPE_CHECKING:
    from harness.explore.exploration import Exploration
    from harness.explore.sweep import Sweep

__all__ = [
    "FORMAT",
    "ExploreReport",
    "Report",
    "SweepReport",
    "explored",
    "report_of",
    "schema",
    "swept",
    "to_json",
    "version_of_this",
]

FORMAT: Final = 1
_INDENT: Final = 2


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What ``check`` and ``replay`` found. ``format`` changes when a reader of the old form would be misled."""

    format: Literal[1]
    version: str  # of jobsworth
    subject: str
    seed: int
    verdict: Verdict
    reason: str
    runs: tuple[Outcome, ...]
    left_out: tuple[LeftOut, ...] = ()  # what does not apply to the client
    stale: tuple[str, ...] = ()  # listed as known failing, and not failing any more: why the verdict is fail


class ExploreReport(Report, frozen=True, kw_only=True):
    """What ``explore`` found. ``runs`` is empty: the examples are counted, and the one that failed is a scenario."""

    examples: int
    steps: int
    seconds: float
    transitions_seen: dict[str, int]
    faults_struck_by_kind: dict[str, int]
    commit_points_struck: dict[str, int]
    contract_values_seen: dict[str, int]
    transitions_not_taken: tuple[str, ...]  # the client was led there, and went another way
    findings: tuple[Finding, ...]
    saved_scenario: str | None = None
    reproduce: str


class SweepReport(Report, frozen=True, kw_only=True):
    """What ``sweep`` found. ``runs`` is empty: they are counted, and the least that breaks a rule is a scenario."""

    faults: int  # at most so many in one run
    placements: int
    pruned: int
    same_reaction: int
    same_situation: int
    nothing_to_strike: int
    audited: int
    runs_made: int
    outcomes: int
    not_made: int
    seconds: float
    scenarios: tuple[SweptStory, ...]
    findings: tuple[Finding, ...]
    saved_scenarios: tuple[str, ...]
    reproduce: str


def report_of(
    subject: str,
    seed: int,
    runs: tuple[Outcome, ...],
    left_out: tuple[LeftOut, ...] = (),
    *,
    stale: tuple[str, ...] = (),
    trouble: str = "",
) -> Report:
    """Merge the outcomes of several runs into one report.

    Args:
        left_out: runs that were not made.
        stale: what is listed as known failing and is not.
        trouble: why there are no runs, or not all of them.
    """
    besides = [*([Verdict.FAIL] if stale else []), *([Verdict.UNKNOWN] if trouble else [])]
    verdict = merge([*(run.verdict for run in runs), *besides])
    broken = any(run.verdict is Verdict.FAIL for run in runs)
    if trouble and broken:
        trouble = f"{_reason(verdict, runs)}; {trouble}"
    elif stale and not broken:
        trouble = f"listed as known failing: {stale[0]}" + (f", and {len(stale) - 1} more" if stale[1:] else "")
    return Report(
        format=FORMAT,
        version=version_of_this(),
        subject=subject,
        seed=seed,
        verdict=verdict,
        reason=trouble or _reason(verdict, runs),
        runs=runs,
        left_out=left_out,
        stale=stale,
    )


def explored(subject: str, seed: int, found: "Exploration") -> ExploreReport:
    """The report of what :func:`harness.explore.exploration.explore` found."""
    return ExploreReport(
        format=FORMAT,
        version=version_of_this(),
        subject=subject,
        seed=seed,
        verdict=found.verdict,
        reason=found.reason,
        runs=(),
        examples=found.examples,
        steps=found.steps,
        seconds=found.seconds,
        transitions_seen=dict(found.transitions_seen),
        faults_struck_by_kind=dict(found.faults_struck_by_kind),
        commit_points_struck=dict(found.commit_points_struck),
        contract_values_seen=dict(found.contract_values_seen),
        transitions_not_taken=found.transitions_not_taken,
        findings=tuple(found.findings),
        saved_scenario=found.saved_scenario,
        reproduce=found.reproduce,
    )


def swept(subject: str, seed: int, found: "Sweep", *, reproduce: str) -> SweepReport:
    """The report of what :func:`harness.explore.sweep.sweep` found."""
    stories = found.stories
    return SweepReport(
        format=FORMAT,
        version=version_of_this(),
        subject=subject,
        seed=seed,
        verdict=found.verdict,
        reason=found.reason,
        runs=(),
        faults=found.faults,
        placements=sum(story.placements for story in stories),
        pruned=sum(story.pruned for story in stories),
        same_reaction=sum(story.same_reaction for story in stories),
        same_situation=sum(story.same_situation for story in stories),
        nothing_to_strike=sum(story.nothing_to_strike for story in stories),
        audited=sum(story.audited for story in stories),
        runs_made=sum(story.runs_made for story in stories),
        outcomes=sum(story.outcomes for story in stories),
        not_made=sum(story.not_made for story in stories),
        seconds=found.seconds,
        scenarios=stories,
        findings=found.findings,
        saved_scenarios=found.saved_scenarios,
        reproduce=reproduce,
    )


def to_json(value: object) -> str:
    """Return ``value`` as JSON a person can read, without a line feed at the end."""
    return msgspec.json.format(msgspec.json.encode(value, order="deterministic"), indent=_INDENT).decode()


def schema() -> dict[str, Any]:
    """The JSON Schema of every report, for ``docs/report.schema.json``."""
    shapes, components = msgspec.json.schema_components(
        [Report, ExploreReport, SweepReport], ref_template="#/$defs/{name}"
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Report of jobsworth",
        "description": "Explore and sweep reports have the keys of a report and more, so they are matched first.",
        "anyOf": [*shapes[1:], shapes[0]],
        "$defs": components,
    }


def version_of_this() -> str:
    """The version of the installed distribution; "unknown" in a bare checkout."""
    try:
        return version("jobsworth")
    except PackageNotFoundError:
        return "unknown"


def _reason(verdict: Verdict, runs: tuple[Outcome, ...]) -> str:
    if not runs:
        return "nothing was run"
    if verdict is Verdict.PASS:
        return f"all {len(runs)} runs passed" if len(runs) > 1 else runs[0].reason
    guilty = [run for run in runs if run.verdict is verdict]
    first = f"{guilty[0].scenario} ({guilty[0].mode}): {guilty[0].reason}"
    return first if len(runs) == 1 else f"{len(guilty)} of {len(runs)} runs: {verdict.value}; the first, {first}"
