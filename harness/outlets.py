"""Where a report goes: the screen, JSON, JUnit XML, annotations, a page for a browser, the logs beside it.

Imports are inside the functions, as in the command line: what is not wanted costs nothing.
"""

import io
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

if TYPE_CHECKING:
    from harness.report.machine import Report
    from harness.report.terminal import Screen
    from harness.runner import Result
    from harness.subjects import Subject

__all__ = ["NoPlace", "draw", "draw_saved", "finish", "keep_logs", "screen", "tell_ci", "write"]


class NoPlace(Exception):
    """What was asked for cannot be written there. The message says why."""


def screen(json_file: str | None) -> "Screen":
    """Where people read: standard output, or nowhere when the JSON goes there, which is checked first."""
    from harness.report.terminal import Screen

    if json_file not in {None, "-"} and not Path(str(json_file)).absolute().parent.is_dir():
        raise NoPlace(f"--json {json_file}: no directory {Path(str(json_file)).parent}")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # an arrow must not end a run where the locale has none
    return Screen(io.StringIO() if json_file == "-" else sys.stdout)


def finish(screen: "Screen", report: "Report", json_file: str | None) -> NoReturn:
    """Say the verdict, write the JSON if it is wanted, and exit as the verdict says."""
    from harness.report.machine import to_json

    screen.verdict(report.verdict, report.reason)
    if json_file is not None:
        write(json_file, to_json(report))
    raise click.exceptions.Exit(report.verdict.exit_code)


def draw(
    directory: Path | None,
    screen: "Screen",
    report: "Report",
    results: "Sequence[Result]",
    summaries: Mapping[str, str],
    notes: Mapping[str, str] | None = None,
) -> None:
    """Write the page for a browser, if one is wanted, and say where it is."""
    if directory is None:
        return
    from harness.report import html

    shown = [
        html.Shown(
            subject=report.subject,
            outcome=result.outcome,
            history=result.history,
            summary=summaries.get(result.outcome.scenario, ""),
            logs=result.logs,
        )
        for result in results
    ]
    screen.say(f"page: {html.write(directory, html.page(shown, report, notes=notes))}")


def draw_saved(
    directory: Path | None,
    screen: "Screen",
    report: "Report",
    subject: "Subject",
    saved: "Sequence[str]",
    notes: Mapping[str, str],
) -> None:
    """The page of a search: what it came to, and the shrunk runs it saved, each made once more."""
    if directory is None:
        return
    from harness.runner import run
    from scenarios.loading import find

    stories = {path: find(path) for path in saved}
    results = [run(story, subject, mode="simulated", source=path) for path, story in stories.items()]
    draw(directory, screen, report, results, {story.name: story.summary for story in stories.values()}, notes)


def tell_ci(report: "Report", junit_file: str | None, *, aside: bool) -> None:
    """Write for the CI server: JUnit XML where it was asked for, annotations where GitHub Actions runs.

    Args:
        aside: standard output holds something else.
    """
    if junit_file is not None:
        from harness.report.junit import to_junit

        write(junit_file, to_junit(report))
    if os.environ.get("GITHUB_ACTIONS") == "true":
        from harness.report.annotations import annotations

        for line in annotations(report):
            click.echo(line, err=aside)


def keep_logs(directory: Path | None, results: "Sequence[Result]") -> None:
    """Write each process's log to a file of its own, named after run and worker."""
    if directory is None:
        return
    directory.mkdir(parents=True, exist_ok=True)
    for result in results:
        for name, text in result.logs.items():
            (directory / f"{result.outcome.scenario}.{name}.log").write_text(text, encoding="utf-8")


def write(file: str, text: str) -> None:
    """Write a text there; ``-`` is standard output."""
    with click.open_file(file, "w", encoding="utf-8") as stream:
        stream.write(f"{text}\n")
