"""Where a report goes: the screen, JSON, JUnit XML, annotations, a page for a browser, the logs beside it.

Imports are inside the functions, as in the command line: what is not wanted costs nothing.
"""

import contextlib
import io
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

import click

if TYPE_CHECKING:
    from harness.report.machine import Report
    from harness.report.terminal import Screen
    from harness.runner import Result
    from harness.subjects import Subject

__all__ = ["NoPlace", "Unread", "draw", "draw_saved", "finish", "keep_logs", "screen", "tell_ci", "tell_where", "write"]


_STDOUT: Final = "jobsworth.stdout"


class NoPlace(Exception):
    """What was asked for cannot be written there. The message says why."""


class Unread(Exception):
    """Whoever read standard output has closed it, so that nobody is told anything any more."""

    exit_code = 141  # 128 + SIGPIPE, as shells have it; click would make it 1, which is a verdict


def screen(
    json_file: str | None,
    *,
    junit_file: str | None = None,
    directories: Mapping[str, Path | None] | None = None,
    save: Path | None = None,
) -> "Screen":
    """Where people read: standard output, or nowhere when a report goes there.

    All places are looked at before anything is run, so that no run is in vain.

    Args:
        directories: by option; made here if there are none.
        save: another one, which is only made once there is something to be kept.

    Raises:
        NoPlace: nothing can be written to one of them.
    """
    from harness.report.terminal import Screen

    for option, directory in (directories or {}).items():
        if directory is not None:
            _make(option, directory)
    if save is not None:
        there = next(each for each in (save.absolute(), *save.absolute().parents) if each.exists())
        if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
            raise NoPlace(f"--save {save}: nothing can be written there")
    files = {"--json": json_file, "--junit": junit_file}
    for option, file in files.items():
        if file is not None and file != "-":
            _look_at(option, file)
    if list(files.values()).count("-") > 1:
        raise NoPlace("--json - and --junit -: both on standard output would be neither")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # an arrow must not end a run where the locale has none
    if "-" not in files.values():
        return Screen(sys.stdout)
    # A client in this process may print what it likes: not into the report.
    context = click.get_current_context()
    context.meta[_STDOUT] = sys.stdout
    context.with_resource(contextlib.redirect_stdout(sys.stderr))
    return Screen(io.StringIO())


def _make(option: str, directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NoPlace(f"{option} {directory}: {error.strerror}") from None
    if not os.access(directory, os.W_OK | os.X_OK):
        raise NoPlace(f"{option} {directory}: nothing can be written there")


def _look_at(option: str, file: str) -> None:
    path = Path(file).absolute()
    if not file:
        raise NoPlace(f"{option} '': an empty name")
    if not path.parent.is_dir():
        raise NoPlace(f"{option} {file}: no directory {Path(file).parent}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise NoPlace(f"{option} {file}: nothing can be written there")


def finish(
    screen: "Screen",
    report: "Report",
    json_file: str | None,
    junit_file: str | None = None,
    *,
    first: Sequence[Callable[[], None]] = (),
    then: Exception | None = None,
) -> NoReturn:
    """Say the verdict, write JSON and JUnit XML if they are wanted, and exit as the verdict says.

    Args:
        first: what else is to be written, before the verdict is said.
        then: why the report is not whole, raised once it is out instead of an exit.

    Raises:
        NoPlace: something could not be written; all the rest was.
    """
    from harness.report.junit import to_junit
    from harness.report.machine import to_json

    lost = []
    for write_it in first:
        try:
            write_it()
        except BrokenPipeError:
            raise
        except OSError as error:
            lost.append(f"{error.filename or 'a report'}: {error.strerror}")
    screen.verdict(report.verdict, report.reason)
    for file, text_of in ((json_file, to_json), (junit_file, to_junit)):
        try:
            if file is not None:
                write(file, text_of(report))
        except NoPlace as error:
            lost.append(str(error))
    if lost:
        raise NoPlace("; ".join(lost))
    if then is not None:
        raise then
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


def tell_where(screen: "Screen", save: Path, saved: Sequence[str]) -> None:
    """Say so where what was found had to go elsewhere than it was to: the folder was good when the search began."""
    if any(Path(path).parent != save for path in saved):
        screen.say(f"--save {save}: nothing could be written there any more; it went elsewhere", "yellow")


def tell_ci(report: "Report", *, aside: bool) -> None:
    """Write annotations where GitHub Actions runs.

    Args:
        aside: standard output holds something else.
    """
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
    try:
        context = click.get_current_context(silent=True)
        if file == "-" and context is not None and _STDOUT in context.meta:
            context.meta[_STDOUT].write(f"{text}\n")
            context.meta[_STDOUT].flush()
            return
        with click.open_file(file, "w", encoding="utf-8") as stream:
            stream.write(f"{text}\n")
            stream.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise NoPlace(f"{file}: {error.strerror}") from None
