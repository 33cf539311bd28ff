"""The arguments that several commands take, and what they mean: which client, in which modes, what is written where.

Imports are inside the functions, as in the command line: ``--help`` costs nothing.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from harness.subjects import Subject
    from scenarios.model import Scenario

__all__ = [
    "WithCommand",
    "WrongUse",
    "html_option",
    "json_option",
    "logs_option",
    "mode_option",
    "modes_of",
    "one_shot_option",
    "resolved",
    "rules_option",
    "seed_option",
    "subject_argument",
    "tell_apart",
]

_USAGE: Final = 2  # the exit status
_COMMAND: Final = "jobsworth.command"


class WrongUse(click.ClickException):
    """The author's mistake, in a scenario, a subject or an argument: shown as it is, without usage or traceback."""

    exit_code = _USAGE


class WithCommand(click.Command):
    """A command that takes ``-- COMMAND …`` after its own arguments: the subject as a process."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            cut = args.index("--")
            ctx.meta[_COMMAND] = tuple(args[cut + 1 :])
            args = args[:cut]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "[-- COMMAND ...]"]


subject_argument = click.argument("subject", required=False)
mode_option = click.option(
    "--mode", type=click.Choice(["simulated", "patched", "process"]), help="Where to run the client."
)
one_shot_option = click.option(
    "--one-shot", is_flag=True, help="COMMAND is run once per operation, and speaks no protocol."
)
logs_option = click.option(
    "--logs",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep there what the processes of each run wrote to standard error.",
)
rules_option = click.option(
    "--rules",
    "edition",
    metavar="N",
    type=int,
    help="Judge by edition N of the rules, which an upgrade does not change; by all there are if left out.",
)
json_option = click.option(
    "--json",
    "json_file",
    metavar="FILE",
    type=click.Path(dir_okay=False, writable=True, allow_dash=True),
    help="Write the report as JSON; - for standard output, and then nothing else goes there.",
)
html_option = click.option(
    "--html",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write the report as a page for a browser: DIR/index.html, which needs nothing else.",
)
seed_option = click.option(
    "--seed", type=click.IntRange(min=0), help="What randomness starts from; the scenario's own if left out."
)


def resolved(ctx: click.Context, spec: str | None, mode: str | None, *, one_shot: bool = False) -> "Subject":
    """Return the client under test.

    Args:
        ctx: knows the program after ``--``, if there is one.
        spec: "reference", ``package.module:factory``, or None.
        mode: the only mode that is wanted, if one is.
        one_shot: the program is run once for each operation.

    Raises:
        WrongUse: if there is no program after ``--``, or the client cannot be run in that mode.
        SubjectError: if there is no such client.
    """
    from harness.subjects import resolve

    if _COMMAND in ctx.meta and not ctx.meta[_COMMAND]:
        raise WrongUse("there is no command after --")
    subject = resolve(spec, ctx.meta.get(_COMMAND, ()), one_shot=one_shot)
    if mode is not None and mode not in subject.modes:
        raise WrongUse(f"{subject.name} cannot run {mode}; it can run {', '.join(subject.modes)}")
    return subject


def modes_of(scenario: "Scenario", subject: "Subject", wanted: str | None, *, named: bool) -> list[str]:
    """Where to run a scenario, the fastest first.

    Args:
        scenario: what to run.
        subject: and against what.
        wanted: only this mode.
        named: the scenario was asked for by name, so that it is an error if it can be run nowhere.

    Raises:
        WrongUse: in that case.
    """
    modes = [str(mode) for mode in subject.modes if mode in scenario.modes and wanted in {None, mode}]
    if not modes and named:
        asked = f"--mode {wanted}" if wanted else subject.name
        raise WrongUse(
            f"{scenario.name} runs {', '.join(scenario.modes)}; {asked} rules that out ({', '.join(subject.modes)})"
        )
    return modes


def tell_apart(chosen: "Mapping[str, Scenario]") -> None:
    """Refuse two scenarios of one name: tables, logs and known findings go by it, and one would hide the other."""
    by_name: dict[str, str] = {}
    for source, scenario in chosen.items():
        if scenario.name in by_name:
            raise WrongUse(f"two scenarios are named {scenario.name!r}: {by_name[scenario.name]} and {source}")
        by_name[scenario.name] = source
