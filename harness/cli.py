"""The command line. Thin: it reads arguments, calls one function of the harness, prints and sets the exit code.
What several commands take is in ``harness.arguments``; where a report goes is in ``harness.outlets``.

Exit codes: 0 pass, 1 fail, 2 wrong usage, 3 unknown; 130 when interrupted, 141 when nobody reads standard output any
more. Imports are inside the commands, so that ``jobsworth --help`` costs nothing.
"""

import errno
import os
import shlex
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final, NoReturn

import click

from harness import outlets
from harness.arguments import (
    WithCommand,
    WrongUse,
    html_option,
    json_option,
    logs_option,
    mode_option,
    modes_of,
    one_shot_option,
    resolved,
    rules_option,
    seed_option,
    subject_argument,
    tell_apart,
)
from harness.outlets import NoPlace

__all__ = ["cli", "main"]

_UNKNOWN: Final = 3
_INTERRUPTED: Final = 130  # 128 + SIGINT, as shells have it
_KINDS: Final = ("scenarios", "rules", "faults", "dialects", "contracts")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="jobsworth")
def cli() -> None:
    """Fault-injection tests for clients of asynchronous job APIs.

    SUBJECT is the client under test: "reference" (the default), package.module:factory, or a program after "--".
    """


@cli.command(cls=WithCommand)
@subject_argument
@click.option(
    "--scenario", "names", metavar="NAME", multiple=True, help="A name or a file; all that come along if none."
)
@mode_option
@seed_option
@rules_option
@one_shot_option
@click.option(
    "--known-failing",
    "known_file",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Findings that do not fail the run, a list of rules for each scenario; one that is gone does.",
)
@logs_option
@click.option(
    "--junit", "junit_file", metavar="FILE", type=click.Path(dir_okay=False), help="Write the report as JUnit XML."
)
@json_option
@html_option
@click.pass_context
def check(
    ctx: click.Context,
    subject: str | None,
    names: tuple[str, ...],
    mode: str | None,
    seed: int | None,
    edition: int | None,
    one_shot: bool,
    known_file: Path | None,
    logs: Path | None,
    junit_file: str | None,
    json_file: str | None,
    html: Path | None,
) -> None:
    """Run scenarios against a client, in every mode it offers."""
    with _errors():
        from harness.editions import edition as load_edition
        from harness.known_failing import excuse, read, stale
        from harness.report.machine import report_of
        from harness.runner import CutShort, Job, run_many, sort_out
        from harness.stage import SubjectBroken
        from scenarios.loading import find, load_catalogue

        screen = outlets.screen(json_file, junit_file=junit_file, directories={"--html": html, "--logs": logs})
        under_test = resolved(ctx, subject, mode, one_shot=one_shot)
        catalogue = load_catalogue()
        everything = load_edition(edition).scenarios if edition is not None else tuple(catalogue)
        chosen = {name: find(name) for name in names or everything}
        tell_apart(chosen)
        known = read(known_file, {*catalogue, *(each.name for each in chosen.values())}) if known_file else {}
        jobs = [
            Job(scenario=scenario, subject=under_test, mode=where, seed=seed, source=source, edition=edition)
            for source, scenario in chosen.items()
            for where in modes_of(scenario, under_test, mode, named=bool(names))
        ]
        trouble = ""
        try:
            jobs, left_out = sort_out(jobs, by_name=bool(names))
        except SubjectBroken as error:
            jobs, left_out, trouble = [], [], str(error)
        with screen.progress(under_test.name, len(jobs)) as progress:
            made, cut_short = [], None
            try:
                made = run_many(jobs, progress.done)
            except CutShort as error:
                if not error.results:
                    raise
                made, cut_short = error.results, error
                trouble = f"{len(made)} of {len(jobs)} runs were made, and then: {error}"
        results = [replace(each, outcome=excuse(known, each.outcome)) for each in made]
        outcomes = tuple(result.outcome for result in results)
        gone = tuple(stale(known, outcomes))
        report = report_of(under_test.name, seed or 0, outcomes, tuple(left_out), stale=gone, trouble=trouble)
        screen.failures(results)
        screen.results(outcomes)
        screen.left_out(left_out)
        screen.known(report)
        outlets.tell_ci(report, aside="-" in {json_file, junit_file})
        summaries = {each.name: each.summary for each in chosen.values()}
        first = [
            lambda: outlets.keep_logs(logs, results),
            lambda: outlets.draw(html, screen, report, results, summaries),
        ]
        outlets.finish(screen, report, json_file, junit_file, first=first, then=cut_short)


@cli.command(cls=WithCommand)
@subject_argument
@click.option("--examples", type=click.IntRange(min=1), default=100, show_default=True, help="Runs to try.")
@click.option("--steps", type=click.IntRange(min=1), default=30, show_default=True, help="Most steps in one run.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option(
    "--save",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(".jobsworth"),
    show_default=True,
    help="Where the shrunk run goes, as a scenario, if there is a failure.",
)
@click.option("--contract", metavar="NAME|FILE", help="Keep to one contract; drawn for each run if left out.")
@click.option(
    "--known", metavar="RULE", multiple=True, help="Do not judge by a rule that is known to be broken: look for others."
)
@json_option
@html_option
@click.pass_context
def explore(
    ctx: click.Context,
    subject: str | None,
    contract: str | None,
    known: tuple[str, ...],
    examples: int,
    steps: int,
    seed: int,
    save: Path,
    json_file: str | None,
    html: Path | None,
) -> None:
    """Look for a failure with Hypothesis: random commands, faults and times, shrunk to the shortest story."""
    with _errors():
        import msgspec

        from harness.explore.exploration import explore as run
        from harness.report.machine import explored
        from scenarios.loading import find_contract

        screen = outlets.screen(json_file, directories={"--html": html}, save=save)
        under_test = resolved(ctx, subject, "simulated")
        promised = find_contract(contract) if contract is not None else None
        found = run(under_test, examples=examples, steps=steps, seed=seed, save=save, contract=promised, known=known)
        if contract is not None:
            found = msgspec.structs.replace(found, reproduce=f"{found.reproduce} --contract {shlex.quote(contract)}")
        report = explored(under_test.name, seed, found)
        screen.exploration(report)
        saved = [report.saved_scenario] if report.saved_scenario is not None else []
        outlets.tell_where(screen, save, saved)
        kinds = sorted(report.faults_struck_by_kind.items(), key=lambda item: -item[1])
        told = ", ".join(f"{kind} {count}" for kind, count in kinds) or "none"
        notes = {"examples": str(report.examples), "steps": str(report.steps), "faults struck": told}
        outlets.draw_saved(html, screen, report, under_test, saved, notes)
        outlets.finish(screen, report, json_file, then=click.Abort() if found.interrupted else None)


@cli.command(cls=WithCommand)
@subject_argument
@click.option("--scenario", "names", metavar="NAME", multiple=True, help="A name or a file; the core ones if none.")
@click.option("--faults", type=click.IntRange(1, 3), default=1, show_default=True, help="Most faults in one run.")
@seed_option
@click.option("--thorough", is_flag=True, help="Two faults and more: with all parameters too, and lasting.")
@click.option("--no-prune", is_flag=True, help="Let no run stand for another one.")
@click.option("--cores", type=click.IntRange(min=1), help="Processes to use; as many as there are cores if left out.")
@click.option("--most-runs", type=click.IntRange(min=1), help="Make no more runs than this, and count the rest.")
@click.option(
    "--save",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(".jobsworth"),
    show_default=True,
    help="Where the shrunk run of each rule that broke goes, as a scenario.",
)
@json_option
@html_option
@click.pass_context
def sweep(
    ctx: click.Context,
    subject: str | None,
    names: tuple[str, ...],
    faults: int,
    seed: int | None,
    thorough: bool,
    no_prune: bool,
    cores: int | None,
    most_runs: int | None,
    save: Path,
    json_file: str | None,
    html: Path | None,
) -> None:
    """Put every fault at every place of a story, one by one or two or three together."""
    with _errors():
        from harness.explore.sweep import CORE
        from harness.explore.sweep import sweep as run
        from harness.report.machine import swept
        from scenarios.loading import find

        screen = outlets.screen(json_file, directories={"--html": html}, save=save)
        under_test = resolved(ctx, subject, "simulated")
        chosen = [find(name) for name in names or CORE]
        with screen.counting() as tell:
            found = run(
                under_test,
                chosen,
                faults=faults,
                seed=seed,
                thorough=thorough,
                prune=not no_prune,
                cores=cores,
                most_runs=most_runs,
                save=save,
                tell=tell,
            )
        words = ["jobsworth", "sweep", under_test.name, *(f"--scenario={name}" for name in names), f"--faults={faults}"]
        words += [f"--seed={seed}"] * (seed is not None) + [f"--most-runs={most_runs}"] * (most_runs is not None)
        words += ["--thorough"] * thorough + ["--no-prune"] * no_prune
        report = swept(under_test.name, seed or 0, found, reproduce=shlex.join(words))
        screen.sweep(report)
        outlets.tell_where(screen, save, report.saved_scenarios)
        notes = {"runs made": str(report.runs_made), "places": str(report.placements)}
        outlets.draw_saved(html, screen, report, under_test, report.saved_scenarios, notes)
        outlets.finish(screen, report, json_file)


@cli.command(cls=WithCommand)
@click.argument("scenario", metavar="FILE|NAME")
@subject_argument
@mode_option
@seed_option
@rules_option
@one_shot_option
@logs_option
@json_option
@html_option
@click.pass_context
def replay(
    ctx: click.Context,
    scenario: str,
    subject: str | None,
    mode: str | None,
    seed: int | None,
    edition: int | None,
    one_shot: bool,
    logs: Path | None,
    json_file: str | None,
    html: Path | None,
) -> None:
    """Run one scenario and tell what happened."""
    with _errors():
        from harness.report.machine import report_of
        from harness.report.story import tell
        from harness.runner import Job, run, sort_out
        from harness.stage import SubjectBroken
        from scenarios.loading import find

        screen = outlets.screen(json_file, directories={"--html": html, "--logs": logs})
        chosen = find(scenario)
        under_test = resolved(ctx, subject, mode, one_shot=one_shot)
        where = modes_of(chosen, under_test, mode, named=True)[0]
        try:
            _, left_out = sort_out([Job(scenario=chosen, subject=under_test, mode=where)], by_name=True)
        except SubjectBroken as error:
            outlets.finish(screen, report_of(under_test.name, seed or 0, (), trouble=str(error)), json_file)
        if left_out:
            raise WrongUse(f"{chosen.name} does not apply to {under_test.name}: {left_out[0].reason}")
        result = run(chosen, under_test, mode=where, seed=seed, source=scenario, edition=edition)
        outlets.keep_logs(logs, [result])
        outcome = result.outcome
        screen.say(f"{chosen.name}: {chosen.summary}", "bold")
        screen.story(tell(result.history, outcome.findings))
        screen.judged(outcome)
        screen.say(f"reproduce: {outcome.reproduce}")
        report = report_of(under_test.name, outcome.seed, (outcome,))
        outlets.draw(html, screen, report, [result], {chosen.name: chosen.summary})
        outlets.finish(screen, report, json_file)


@cli.command()
@click.option("--dialect", default="jobs", show_default=True, help="The wire format.")
@click.option("--contract", metavar="NAME|FILE", help="What it promises: a preset, or a contract in YAML.")
@click.option("--scenario", metavar="NAME|FILE", help="Take contract, work and faults from a scenario.")
@click.option("--port", type=click.IntRange(0, 65_535), default=0, help="A port of one's own choice; any that is free.")
@click.option("--control-port", type=click.IntRange(0, 65_535), default=0, help="The same, of the control API.")
@click.option("--clock", type=click.Choice(["system", "manual"]), default="system", help="manual: moved when told to.")
@click.option("--webhook-url", metavar="URL", help="Where webhooks go, if the contract has them.")
@click.option("--quiet", is_flag=True, help="Do not tell what happens.")
@click.option("--judge", is_flag=True, help="At the end, hold each session against the rules; exit with 1 on a breach.")
def serve(
    dialect: str,
    contract: str | None,
    scenario: str | None,
    port: int,
    control_port: int,
    clock: str,
    webhook_url: str | None,
    quiet: bool,
    judge: bool,
) -> None:
    """Run the fake provider by itself, on the loopback interface, until SIGINT or SIGTERM."""
    with _errors():
        from fake_provider.sessions import HostOutOfReach
        from harness.serving import Served, sum_up, terms_of
        from harness.serving import serve as run
        from scenarios.loading import find, find_contract

        story = find(scenario) if scenario is not None else None
        promised = find_contract(contract) if contract is not None else None
        screen = outlets.screen(None)
        try:
            terms = terms_of(story, contract=promised, dialect=dialect, clock=clock, webhook_url=webhook_url)
            served = Served(terms=terms, port=port, control_port=control_port, quiet=quiet, judged=judge)
            judgements = run(served, say=screen.say)
        except HostOutOfReach as error:
            raise WrongUse(f"{error}; jobsworth replay has it") from None
        except ValueError as error:
            raise WrongUse(str(error)) from None
        except OSError as error:
            raise WrongUse(f"cannot listen: {error.strerror or error}") from None
        if judge:
            screen.wire(judgements)
            verdict, reason = sum_up(judgements)
            screen.verdict(verdict, reason)
            raise click.exceptions.Exit(verdict.exit_code)


@cli.command(name="list")
@click.argument("kind", type=click.Choice(_KINDS))
@json_option
def list_(kind: str, json_file: str | None) -> None:
    """Show what there is of a KIND."""
    with _errors():
        from harness.report.listings import listing
        from harness.report.machine import to_json

        items = listing(kind)
        screen = outlets.screen(json_file)
        width = max((len(item["id"]) for item in items), default=0)
        for item in items:
            screen.say(f"{item['id']:<{width}}  {item['summary']}")
        if json_file is not None:
            outlets.write(json_file, to_json(items))


@contextmanager
def _errors() -> Iterator[None]:
    """Turn the author's mistakes into one block on standard error and exit code 2."""
    from harness.editions import UnknownEdition
    from harness.known_failing import BadList
    from harness.stage import SubjectError
    from scenarios.loading import ScenarioError

    try:
        yield
    except ScenarioError as error:
        lines = [str(problem) for problem in error.problems]
        raise WrongUse("\n  ".join([f"{len(lines)} mistakes", *lines]) if len(lines) > 1 else lines[0]) from None
    except (BadList, NoPlace, SubjectError, UnknownEdition) as error:
        raise WrongUse(str(error)) from None
    except BrokenPipeError:
        raise outlets.Unread from None
    except OSError as error:
        if error.errno == errno.ENOSPC and error.filename is None:
            _drop_output()
            raise WrongUse(f"standard output: {error.strerror}") from None
        if error.filename is None:
            raise
        raise WrongUse(f"{error.filename}: {error.strerror}") from None


def _drop_output() -> None:
    """Send what is still buffered nowhere: Python would fail over it at the end, with a status of its own."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def main() -> NoReturn:
    """Run the command line. A bug of our own is no verdict on anyone: it ends as unknown, with its traceback."""
    # Whoever ends a job sends SIGTERM: it ends as an interrupt does, with nothing left behind.
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        code = cli.main(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except outlets.Unread as error:
        _drop_output()
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        code = _INTERRUPTED
    except Exception:  # noqa: BLE001  what else happens here is our fault
        traceback.print_exc()
        click.echo("This is a bug in jobsworth, not in the client under test.", err=True)
        code = _UNKNOWN
    sys.exit(code if isinstance(code, int) else 0)
