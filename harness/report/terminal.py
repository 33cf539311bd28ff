"""Reports for people: colour and a table on a terminal, plain lines elsewhere.

What a client under test says is not trusted: it is never read as markup, and its control characters are written out.
"""

import errno
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, NoReturn, Protocol, TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from harness.history import Entry, History
from harness.report.machine import ExploreReport, Report, SweepReport
from harness.report.story import Line, Mark
from harness.report.words import describe
from harness.verdict import Finding, LeftOut, Outcome, Verdict
from harness.wire_judgement import WireJudgement

__all__ = ["Progressing", "Ran", "Screen", "clean"]

_COLOUR: Final = {Verdict.PASS: "green", Verdict.FAIL: "bold red", Verdict.UNKNOWN: "yellow"}
_MARK: Final = {Mark.PLAIN: " ", Mark.FAULT: "!", Mark.NEXT: ">", Mark.FINDING: "X"}
_MARK_COLOUR: Final = {Mark.PLAIN: "", Mark.FAULT: "red", Mark.NEXT: "cyan", Mark.FINDING: "bold red"}
_PLAIN_WIDTH: Final = 120  # of a table in a file or a CI log, which wrap by themselves or not at all
_MOST_FACTS: Final = 12  # shown of one finding: more prove no more
_MOST_ALIKE: Final = 3  # breaches of one rule in one run that are told one by one
_MOST_CHARACTERS: Final = 2_000  # shown of one text: a client may say anything, at any length


def clean(text: str) -> str:
    """``text`` with control characters written out, so that it can neither steer a terminal nor break a line."""
    shown = text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}… ({len(text)} characters)"
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in shown)


class Ran(Protocol):
    """A finished run (``harness.runner.Result``)."""

    @property
    def outcome(self) -> Outcome: ...

    @property
    def history(self) -> History: ...


class _Facts(Protocol):
    """Facts by their numbers, such as a history."""

    def __getitem__(self, seq: int, /) -> Entry: ...


class _Console(Console):
    """A console that leaves it to the command line what is done when nobody reads any more."""

    def on_broken_pipe(self) -> NoReturn:
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


class Screen:
    """Writes reports to one stream."""

    def __init__(self, stream: TextIO, *, terminal: bool | None = None) -> None:
        """Args:
        stream: where to.
        terminal: whether a person watches; found out from the stream if None.
        """
        self._console = _Console(file=stream, force_terminal=terminal, markup=False, highlight=False, emoji=False)
        self._terminal = self._console.is_terminal
        if not self._terminal:
            self._console.width = _PLAIN_WIDTH

    def say(self, text: str, style: str = "") -> None:
        """Write one line, whatever its length."""
        self._console.print(Text(clean(text), style=style), soft_wrap=True)

    @contextmanager
    def progress(self, what: str, total: int) -> Iterator["Progressing"]:
        """Show how far a long command is: a bar on a terminal, a line for each finished run elsewhere."""
        if not self._terminal:
            yield Progressing(self, None)
            return
        columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
        with Progress(*columns, console=self._console, transient=True) as bar:
            bar.add_task(what, total=total)
            yield Progressing(self, bar)

    @contextmanager
    def counting(self) -> Iterator[Callable[[str, int, int], None]]:
        """Show how far something is whose end moves: a bar on a terminal, a line at the end of each stage elsewhere.

        Yields:
            a function to be told what is being done, how much of it is done, and how much there is.
        """
        if not self._terminal:
            yield lambda what, done, total: self.say(f"{what}: {done} runs") if done == total else None
            return
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=self._console, transient=True) as bar:
            tasks: dict[str, TaskID] = {}

            def tell(what: str, done: int, total: int) -> None:
                if what not in tasks:
                    tasks[what] = bar.add_task(what)
                bar.update(tasks[what], completed=done, total=total)

            yield tell

    def results(self, outcomes: Sequence[Outcome]) -> None:
        """A table with a row for each scenario and a column for each mode."""
        modes = list(dict.fromkeys(outcome.mode for outcome in outcomes))
        table = Table(box=None, header_style="bold", pad_edge=False)
        for heading in ("scenario", *modes, "faults"):
            table.add_column(heading, no_wrap=heading in modes)
        for scenario in dict.fromkeys(outcome.scenario for outcome in outcomes):
            by_mode = {outcome.mode: outcome for outcome in outcomes if outcome.scenario == scenario}
            cells = [_verdict(by_mode[mode].verdict) if mode in by_mode else Text("-", "dim") for mode in modes]
            table.add_row(Text(clean(scenario)), *cells, Text(" ".join(map(_faults, by_mode.values()))))
        self._console.print(table)

    def left_out(self, left_out: Sequence[LeftOut]) -> None:
        """Which scenarios do not apply to the client, by reason."""
        by_reason: dict[str, list[str]] = {}
        for each in left_out:
            by_reason.setdefault(each.reason, []).append(each.scenario)
        for reason, names in sorted(by_reason.items()):
            self.say(f"not applicable, {len(names)}: {reason}", "dim")
            self.say(f"  {', '.join(names)}", "dim")

    def known(self, report: Report) -> None:
        """What is listed as known failing: what still fails, and what does not any more."""
        for outcome in report.runs:
            for rule in sorted({finding.rule for finding in outcome.known_failing}):
                self.say(f"known failing: {outcome.scenario} ({outcome.mode}) breaks {rule}", "yellow")
        for line in report.stale:
            self.say(f"stale: {line}; take it off the list", "bold red")

    def failures(self, runs: Iterable[Ran]) -> None:
        """What is wrong with each run that did not pass, the facts that prove it, and how to see it again."""
        for run in runs:
            outcome = run.outcome
            if outcome.verdict is Verdict.PASS:
                continue
            self.say("")
            heading = f"{outcome.verdict.value.upper()} {outcome.scenario} ({outcome.mode}): {outcome.reason}"
            self.say(heading, _COLOUR[outcome.verdict])
            self.findings(outcome.findings, run.history)
            self.say(f"  reproduce: {outcome.reproduce}")

    def findings(self, findings: Sequence[Finding], history: "_Facts | None" = None) -> None:
        """The breaches of one run: the first of each rule, since a client that goes wrong mostly goes on doing so."""
        told: Counter[str] = Counter()
        for finding in findings:
            told[finding.rule] += 1
            if told[finding.rule] <= _MOST_ALIKE:
                self.finding(finding, history)
        for rule, count in told.items():
            if count > _MOST_ALIKE:
                self.say(f"  {rule}: … and {count - _MOST_ALIKE} more like these", "red")

    def finding(self, finding: Finding, history: "_Facts | None" = None) -> None:
        """One breach, and the facts that prove it if their history is at hand."""
        self.say(f"  {finding.rule} ({finding.requirement}): {finding.message}", "red")
        if history is None:
            return
        for seq in finding.facts[:_MOST_FACTS]:
            entry = history[seq]
            sentence = describe(entry.fact)
            self.say(f"    #{seq:<4} {entry.at:9.3f} s  {sentence.actor:<9} {sentence.text}")
        if len(finding.facts) > _MOST_FACTS:
            self.say(f"    … and {len(finding.facts) - _MOST_FACTS} more")

    def wire(self, judgements: Iterable[WireJudgement]) -> None:
        """What was found in each session of a provider that served by itself."""
        for each in judgements:
            findings = each.judgement.findings
            told = "1 finding" if len(findings) == 1 else f"{len(findings) or 'no'} findings"
            self.say(f"session {each.session}: {told}, {len(each.judgement.judged)} rules judged")
            self.findings(findings, each.proofs)

    def story(self, lines: Iterable[Line]) -> None:
        """A run in words."""
        for line in lines:
            when = " " * 11 if line.mark is Mark.FINDING else f"{line.at:9.3f} s"
            self.say(f"{_MARK[line.mark]} {when}  {line.actor:<9} {line.text}", _MARK_COLOUR[line.mark])

    def judged(self, outcome: Outcome) -> None:
        """How much a run could show. Which rules had nothing to judge is in the JSON."""
        needs = Counter(item.needs for item in outcome.rules_not_judged)
        idle = "; ".join(f"{count} that judge from the {need}" for need, count in sorted(needs.items()))
        self.say(f"rules judged: {outcome.rules_judged}" + (f"; with nothing to judge: {idle}" if idle else ""), "dim")

    def verdict(self, verdict: Verdict, reason: str) -> None:
        """The last line of every report."""
        self.say(f"{verdict.value}: {reason}", _COLOUR[verdict])

    def exploration(self, report: ExploreReport) -> None:
        """What an exploration reached and found."""
        self.say(f"{report.examples} examples, {report.steps} steps, {report.seconds:.1f} s, seed {report.seed}")
        self._counts("faults struck", report.faults_struck_by_kind)
        self._counts("at commit points", report.commit_points_struck)
        self._counts("transitions seen", report.transitions_seen, or_else="none; the client notes none")
        self.say(f"contract values: {len(report.contract_values_seen)}")
        if report.transitions_not_taken:
            self.say(f"led there, and went another way: {', '.join(report.transitions_not_taken)}")
        self.findings(report.findings)
        if report.saved_scenario is not None:
            self.say(f"the shrunk run is saved as {report.saved_scenario}")
        if report.verdict is not Verdict.PASS:
            self.say(f"reproduce: {report.reproduce}")

    def sweep(self, report: SweepReport) -> None:
        """What a sweep went through and found."""
        table = Table(box=None, header_style="bold", pad_edge=False)
        table.add_column("scenario")
        for heading in ("placements", "pruned", "runs made", "outcomes", "not made"):
            table.add_column(heading, justify="right")
        for each in report.scenarios:
            counts = (each.placements, each.pruned, each.runs_made, each.outcomes, each.not_made)
            table.add_row(Text(clean(each.scenario)), *(f"{count:,}" for count in counts))
        self._console.print(table)
        self.say(
            f"faults in one run, at most: {report.faults}; placements {report.placements:,}, pruned {report.pruned:,}, "
            f"runs made {report.runs_made:,}, not made {report.not_made:,}; {report.seconds:.1f} s"
        )
        others = report.pruned - report.same_reaction - report.same_situation - report.nothing_to_strike
        self.say(
            f"pruned: {report.same_reaction:,} in runs in which the client did the same as in another one; "
            f"{report.same_situation:,} as the same fault is tried in the same situation; "
            f"{report.nothing_to_strike:,} where there is nothing to strike; {others:,} that make no difference"
        )
        self.say(f"audited, that is pruned and run all the same: {report.audited:,}")
        bare = [each.scenario for each in report.scenarios if not each.placements]
        if bare and report.findings:
            self.say(f"no fault was placed in {', '.join(bare)}: where a rule breaks without any fault, none is tried")
        self.findings(report.findings)
        for saved in report.saved_scenarios:
            self.say(f"a shrunk run is saved as {saved}")
        if report.verdict is not Verdict.PASS:
            self.say(f"reproduce: {report.reproduce}")

    def _counts(self, what: str, counts: Mapping[str, int], *, or_else: str = "none") -> None:
        told = ", ".join(f"{name} {count}" for name, count in sorted(counts.items(), key=lambda item: -item[1]))
        self.say(f"{what}: {told or or_else}")


class Progressing:
    """Told of each finished run."""

    def __init__(self, screen: Screen, bar: Progress | None) -> None:
        self._screen = screen
        self._bar = bar

    def done(self, run: Ran) -> None:
        if self._bar is not None:
            self._bar.advance(self._bar.task_ids[0])
            return
        outcome = run.outcome
        rules = f"{outcome.rules_judged} rules"
        self._screen.say(
            f"{outcome.verdict.value:<8}{outcome.mode:<10} {outcome.scenario}  {rules}, faults {_faults(outcome)}"
        )


def _verdict(verdict: Verdict) -> Text:
    return Text(verdict.value, _COLOUR[verdict])


def _faults(outcome: Outcome) -> str:
    return f"{outcome.faults_struck}/{outcome.faults_planned}"
