"""Reports for people: plain where nobody watches, and never steered by what the client under test says."""

import io
from dataclasses import dataclass

import pytest

from harness.history import History, SubjectComplained
from harness.report.story import Line, Mark
from harness.report.terminal import Screen, clean
from harness.verdict import Finding, NotJudged, Outcome, Verdict


@dataclass
class Run:
    outcome: Outcome
    history: History


def run(
    verdict: Verdict = Verdict.PASS, *, scenario: str = "happy-path", mode: str = "simulated", message: str = "two jobs"
) -> Run:
    history = History(lambda: 1.5)
    history.record(SubjectComplained(worker="w1", message="[red]\x1b[2Jboo"))
    facts = (0,)
    return Run(
        Outcome(
            scenario=scenario,
            mode=mode,
            seed=0,
            verdict=verdict,
            reason="broken: a-rule" if verdict is Verdict.FAIL else "so it is",
            rules_judged=31,
            rules_not_judged=(NotJudged(rule="rule-b", needs="history"), NotJudged(rule="rule-c", needs="history")),
            faults_planned=2,
            faults_struck=1,
            findings=(Finding(rule="a-rule", requirement="W1.1", message=message, facts=facts),)
            if verdict is Verdict.FAIL
            else (),
            history_sha256="",
            reproduce="jobsworth replay happy-path",
        ),
        history,
    )


def written(*, terminal: bool = False) -> tuple[Screen, io.StringIO]:
    stream = io.StringIO()
    return Screen(stream, terminal=terminal), stream


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain → ü", "plain → ü"),
        ("\x1b[2J", r"\x1b[2J"),
        ("two\nlines\r", r"two\nlines\r"),
        ("\u202eright to left", r"\u202eright to left"),
        ("a" * 3000, "a" * 2000 + "… (3000 characters)"),
    ],
)
def test_control_characters_are_written_out(text: str, shown: str) -> None:
    assert clean(text) == shown


def test_markup_in_what_a_client_says_is_shown_and_not_obeyed() -> None:
    screen, stream = written(terminal=True)
    screen.story([Line(at=1, actor="w1", text="[bold red]:boom:[/] \x1b[2J", facts=(0,))])
    assert r"[bold red]:boom:[/] \x1b[2J" in stream.getvalue()


def test_a_long_line_is_not_folded() -> None:
    screen, stream = written()
    screen.say("word " * 100)
    assert stream.getvalue().count("\n") == 1


def test_a_failure_is_told_with_its_rule_its_facts_and_how_to_see_it_again() -> None:
    screen, stream = written()
    screen.failures([run(), run(Verdict.FAIL)])
    assert stream.getvalue().splitlines() == [
        "",
        "FAIL happy-path (simulated): broken: a-rule",
        "  a-rule (W1.1): two jobs",
        r"    #0        1.500 s  w1        complains: [red]\x1b[2Jboo",
        "  reproduce: jobsworth replay happy-path",
    ]


def test_an_unknown_run_is_told_with_its_reason() -> None:
    screen, stream = written()
    screen.failures([run(Verdict.UNKNOWN)])
    assert "UNKNOWN happy-path (simulated): so it is" in stream.getvalue()


def test_a_finding_with_very_many_facts_shows_the_first_of_them() -> None:
    screen, stream = written()
    history = History(lambda: 0.0)
    for _ in range(20):
        history.record(SubjectComplained(worker="w1", message="again"))
    screen.finding(Finding(rule="a-rule", requirement="W1.1", message="m", facts=tuple(range(20))), history)
    assert stream.getvalue().count("again") == 12
    assert "… and 8 more" in stream.getvalue()


def test_of_breaches_of_one_rule_the_first_are_told_and_the_others_counted() -> None:
    screen, stream = written()
    often = [Finding(rule="a-rule", requirement="W1.1", message=f"read {number}", facts=()) for number in range(40)]
    screen.findings([*often[:39], Finding(rule="b-rule", requirement="W1.2", message="once", facts=()), often[39]])
    assert stream.getvalue().splitlines() == [
        "  a-rule (W1.1): read 0",
        "  a-rule (W1.1): read 1",
        "  a-rule (W1.1): read 2",
        "  b-rule (W1.2): once",
        "  a-rule: … and 37 more like these",
    ]


def test_results_are_a_table_of_scenarios_and_modes() -> None:
    screen, stream = written()
    runs = [run(), run(mode="process"), run(Verdict.UNKNOWN, scenario="stale-lease")]
    screen.results([each.outcome for each in runs])
    rows = [line.split() for line in stream.getvalue().splitlines()]
    assert rows == [
        ["scenario", "simulated", "process", "faults"],
        ["happy-path", "pass", "pass", "1/2", "1/2"],
        ["stale-lease", "unknown", "-", "1/2"],
    ]


def test_elsewhere_than_on_a_terminal_each_finished_run_is_a_plain_line() -> None:
    screen, stream = written()
    with screen.progress("reference", 1) as progress:
        progress.done(run())
    assert stream.getvalue() == "pass    simulated  happy-path  31 rules, faults 1/2\n"


def test_on_a_terminal_progress_leaves_nothing_behind_but_a_bar() -> None:
    screen, stream = written(terminal=True)
    with screen.progress("reference", 1) as progress:
        progress.done(run())
    assert "happy-path" not in stream.getvalue()


def test_a_story_marks_faults_what_came_next_and_findings() -> None:
    screen, stream = written()
    marks = [Mark.PLAIN, Mark.FAULT, Mark.NEXT, Mark.FINDING]
    screen.story([Line(at=0.5, actor="w1", text=mark.value, mark=mark, facts=()) for mark in marks])
    assert stream.getvalue().splitlines() == [
        "      0.500 s  w1        plain",
        "!     0.500 s  w1        fault",
        ">     0.500 s  w1        next",
        "X              w1        finding",
    ]


def test_how_much_was_judged_is_told_by_what_rules_judge_from() -> None:
    screen, stream = written()
    screen.judged(run().outcome)
    assert stream.getvalue() == "rules judged: 31; with nothing to judge: 2 that judge from the history\n"
