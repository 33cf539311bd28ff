"""The command line: what it runs, what it prints where, and how it ends."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest
from click.testing import CliRunner
from click.testing import Result as CliResult

from harness.cli import cli, main
from harness.explore.exploration import Exploration
from harness.history import History, WorkerStarted
from harness.runner import Job, Result
from harness.stage import SubjectError
from harness.subjects import Subject
from harness.verdict import Finding, LeftOut, Outcome, Verdict

STORY = """\
name: a-story
summary: Something happens.
steps:
  - {at: 0, do: submit, operation: op-1}
"""


class Ground:
    """Stands in for the runner: remembers the jobs it was given and gives each the verdict it was told to."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self.verdicts: dict[str, Verdict] = {}  # by scenario; pass if not named
        self.subjects: list[tuple[str | None, tuple[str, ...]]] = []
        self.modes: tuple[str, ...] = ("simulated", "process")
        self.cannot: dict[str, str] = {}

    def resolve(self, spec: str | None = None, command: Sequence[str] = (), *, one_shot: bool = False) -> Subject:
        self.subjects.append((spec, tuple(command)))
        if spec == "no.such:thing":
            raise SubjectError("'no.such:thing': no module 'no'")
        return Subject(
            name=spec or "reference",
            factory=(lambda _: None) if "simulated" in self.modes else None,  # type: ignore[arg-type,return-value]
            command=("client",) if "process" in self.modes else None,
            one_shot=one_shot,
        )

    def sort_out(self, jobs: Sequence[Job], *, by_name: bool = False) -> tuple[list[Job], list[LeftOut]]:
        """Leave out what the client cannot do: scenarios named in ``cannot``."""
        left_out = [
            LeftOut(scenario=job.scenario.name, mode=job.mode, reason=self.cannot[job.scenario.name])
            for job in jobs
            if job.scenario.name in self.cannot
        ]
        return [job for job in jobs if job.scenario.name not in self.cannot], left_out

    def run_many(self, jobs: Sequence[Job], on_done: Callable[[Result], object]) -> list[Result]:
        self.jobs += jobs
        results = [self.result(job) for job in jobs]
        for result in results:
            on_done(result)
        return results

    def run(self, scenario: Any, subject: Subject, **rest: Any) -> Result:
        job = Job(scenario=scenario, subject=subject, **rest)
        self.jobs.append(job)
        return self.result(job)

    def result(self, job: Job) -> Result:
        verdict = self.verdicts.get(job.scenario.name, Verdict.PASS)
        history = History(lambda: 0.25)
        history.record(WorkerStarted(worker="w1"))
        finding = Finding(rule="a-rule", requirement="W1.1", message="it broke", facts=(0,))
        outcome = Outcome(
            scenario=job.scenario.name,
            mode=job.mode,
            seed=job.effective_seed,
            verdict=verdict,
            reason="so it is",
            rules_judged=3,
            rules_not_judged=(),
            faults_planned=0,
            faults_struck=0,
            findings=(finding,) if verdict is Verdict.FAIL else (),
            history_sha256=history.sha256(),
            reproduce=job.reproduce,
        )
        return Result(outcome, history)


@pytest.fixture
def ground(monkeypatch: pytest.MonkeyPatch) -> Ground:
    stand_in = Ground()
    monkeypatch.setattr("harness.runner.run_many", stand_in.run_many)
    monkeypatch.setattr("harness.runner.sort_out", stand_in.sort_out)
    monkeypatch.setattr("harness.runner.run", stand_in.run)
    monkeypatch.setattr("harness.subjects.resolve", stand_in.resolve)
    return stand_in


@pytest.fixture
def story(tmp_path: Path) -> Path:
    path = tmp_path / "a-story.yaml"
    path.write_text(STORY, encoding="utf-8")
    return path


def jobsworth(*args: str | Path) -> CliResult:
    return CliRunner().invoke(cli, [str(arg) for arg in args])


# -- check


def test_check_runs_every_story_of_the_catalogue_in_every_mode_that_story_and_client_share(ground: Ground) -> None:
    from scenarios.loading import load_catalogue

    assert jobsworth("check").exit_code == 0
    expected = [
        (name, mode) for name, scenario in load_catalogue().items() for mode in scenario.modes if mode in ground.modes
    ]
    assert sorted((job.scenario.name, job.mode) for job in ground.jobs) == sorted(expected)


def test_check_runs_what_is_named_once_and_where_it_is_told_to(ground: Ground, story: Path) -> None:
    result = jobsworth(
        "check", "--scenario", "happy-path", "--scenario", story, "--scenario", "happy-path", "--mode", "process"
    )
    assert result.exit_code == 0
    assert [(job.scenario.name, job.mode) for job in ground.jobs] == [("happy-path", "process"), ("a-story", "process")]
    assert f"replay {story} " in ground.jobs[1].reproduce


def test_the_seed_of_the_command_line_wins_over_that_of_the_story(ground: Ground, story: Path) -> None:
    story.write_text(f"{STORY}seed: 5\n", encoding="utf-8")
    jobsworth("check", "--scenario", story, "--mode", "simulated")
    jobsworth("check", "--scenario", story, "--mode", "simulated", "--seed", "9")
    assert [job.effective_seed for job in ground.jobs] == [5, 9]


@pytest.mark.parametrize(("verdict", "code"), [(Verdict.PASS, 0), (Verdict.FAIL, 1), (Verdict.UNKNOWN, 3)])
def test_the_exit_code_is_the_verdicts(ground: Ground, verdict: Verdict, code: int) -> None:
    ground.verdicts["happy-path"] = verdict
    result = jobsworth("check", "--scenario", "happy-path", "--scenario", "stale-lease")
    assert result.exit_code == code
    assert result.output.splitlines()[-1].startswith(f"{verdict.value}: ")


def test_a_failure_is_printed_with_its_rule_the_facts_and_the_line_that_reproduces_it(ground: Ground) -> None:
    ground.verdicts["happy-path"] = Verdict.FAIL
    output = jobsworth("check", "--scenario", "happy-path", "--mode", "simulated").output
    assert "a-rule (W1.1): it broke" in output
    assert "#0        0.250 s  w1        starts" in output
    assert "reproduce: jobsworth replay happy-path --mode simulated --seed 0" in output


def test_json_to_standard_output_is_alone_there(ground: Ground) -> None:
    ground.verdicts["happy-path"] = Verdict.FAIL
    result = jobsworth("check", "--scenario", "happy-path", "--json", "-")
    report = json.loads(result.stdout)
    assert result.exit_code == 1
    assert (report["format"], report["subject"], report["verdict"]) == (1, "reference", "fail")
    assert [run["mode"] for run in report["runs"]] == ["simulated", "process"]


def test_json_to_a_file_leaves_standard_output_to_people(ground: Ground, tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    result = jobsworth("check", "--scenario", "happy-path", "--json", path)
    assert json.loads(path.read_text(encoding="utf-8"))["verdict"] == "pass"
    assert "happy-path" in result.stdout


def test_what_does_not_apply_to_the_client_is_named_and_not_run(ground: Ground) -> None:
    ground.cannot["duplicate-webhook"] = "the client takes no webhooks"
    result = jobsworth("check", "--scenario", "happy-path", "--scenario", "duplicate-webhook", "--mode", "process")
    assert [job.scenario.name for job in ground.jobs] == ["happy-path"]
    assert "not applicable, 1: the client takes no webhooks\n  duplicate-webhook" in result.output


def test_check_writes_a_page_with_all_runs_and_says_where(ground: Ground, story: Path, tmp_path: Path) -> None:
    ground.verdicts["a-story"] = Verdict.FAIL
    folder = tmp_path / "pages" / "today"
    result = jobsworth("check", "--scenario", story, "--scenario", "happy-path", "--html", folder)
    assert result.exit_code == 1
    assert f"page: {folder / 'index.html'}" in result.output
    page = (folder / "index.html").read_text(encoding="utf-8")
    assert "Something happens." in page
    assert page.count('<script type="application/json" id="run-') == 4


def test_without_being_asked_to_no_command_writes_a_page(
    ground: Ground, story: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    assert ground.jobs == []
    jobsworth("check", "--scenario", story)
    jobsworth("replay", story)
    assert sorted(tmp_path.rglob("*")) == before


# -- subjects


def test_a_client_is_named_as_a_factory_or_as_a_command_after_two_dashes(ground: Ground) -> None:
    jobsworth("check", "package.module:build", "--scenario", "happy-path")
    jobsworth("check", "--scenario", "happy-path", "--", "node", "client.js", "--verbose", "--", "x")
    jobsworth("replay", "happy-path", "package.module:build")
    jobsworth("replay", "happy-path", "--", "node", "client.js")
    assert ground.subjects == [
        ("package.module:build", ()),
        (None, ("node", "client.js", "--verbose", "--", "x")),
        ("package.module:build", ()),
        (None, ("node", "client.js")),
    ]


# -- replay


def test_replay_tells_the_story_of_one_run(ground: Ground, story: Path) -> None:
    result = jobsworth("replay", story)
    assert result.exit_code == 0
    assert [job.mode for job in ground.jobs] == ["simulated"]
    assert "a-story: Something happens." in result.output
    assert "0.250 s  w1        starts" in result.output


def test_replay_pins_findings_into_the_story(ground: Ground, story: Path) -> None:
    ground.verdicts["a-story"] = Verdict.FAIL
    result = jobsworth("replay", story, "--mode", "process", "--seed", "4")
    assert result.exit_code == 1
    assert "X              a-rule    W1.1: it broke" in result.output
    assert [(job.mode, job.seed) for job in ground.jobs] == [("process", 4)]


def test_replay_writes_json_too(ground: Ground, story: Path) -> None:
    report = json.loads(jobsworth("replay", story, "--json", "-").stdout)
    assert [run["scenario"] for run in report["runs"]] == ["a-story"]


def test_replay_writes_a_page_of_its_run_too(ground: Ground, story: Path, tmp_path: Path) -> None:
    assert jobsworth("replay", story, "--html", tmp_path / "page").exit_code == 0
    assert "Something happens." in (tmp_path / "page" / "index.html").read_text(encoding="utf-8")
    assert len(ground.jobs) == 1


# -- explore


def exploration(verdict: Verdict) -> Exploration:
    found = verdict is Verdict.FAIL
    finding = Finding(rule="a-rule", requirement="W1.1", message="it broke", facts=(3,))
    return Exploration(
        verdict=verdict,
        reason="so it is",
        examples=20,
        steps=300,
        seconds=0.5,
        transitions_seen={"accepted -> observing": 20},
        faults_struck_by_kind={"kill": 3, "stop": 4},
        commit_points_struck={"received": 7},
        contract_values_seen={"create_answer=accepted_202": 20},
        transitions_not_taken=(),
        findings=(finding,) if found else (),
        saved_scenario="found/here.yaml" if found else None,
        reproduce="jobsworth replay found/here.yaml" if found else "jobsworth explore --seed 3",
    )


@pytest.mark.usefixtures("ground")
def test_explore_passes_on_what_it_was_asked_and_tells_what_was_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}

    def explore(subject: Subject, **rest: Any) -> Exploration:
        asked.update(rest, subject=subject.name)
        return exploration(Verdict.PASS)

    monkeypatch.setattr("harness.explore.exploration.explore", explore)
    result = jobsworth(
        "explore", "a.module:build", "--examples", "20", "--steps", "9", "--seed", "3", "--contract", "careless"
    )
    assert result.exit_code == 0
    assert asked.pop("contract").name == "careless"
    assert asked.pop("known") == ()
    assert asked == {"subject": "a.module:build", "examples": 20, "steps": 9, "seed": 3, "save": Path(".jobsworth")}
    assert "20 examples, 300 steps, 0.5 s, seed 3" in result.output
    assert "faults struck: stop 4, kill 3" in result.output
    assert "transitions seen: accepted -> observing 20" in result.output


@pytest.mark.usefixtures("ground")
def test_of_a_client_that_notes_nothing_no_transitions_are_said_to_be_told(monkeypatch: pytest.MonkeyPatch) -> None:
    silent = msgspec.structs.replace(exploration(Verdict.PASS), transitions_seen={})
    monkeypatch.setattr("harness.explore.exploration.explore", lambda *_, **__: silent)
    assert "transitions seen: none; the client notes none" in jobsworth("explore").output


@pytest.mark.usefixtures("ground")
def test_explore_says_where_it_saved_the_shrunk_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.explore.exploration.explore", lambda *_, **__: exploration(Verdict.FAIL))
    result = jobsworth("explore")
    assert result.exit_code == 1
    assert "a-rule (W1.1): it broke" in result.output
    assert "the shrunk run is saved as found/here.yaml" in result.output
    assert "reproduce: jobsworth replay found/here.yaml" in result.output
    report = json.loads(jobsworth("explore", "--json", "-").stdout)
    assert report["saved_scenario"] == "found/here.yaml"
    assert report["faults_struck_by_kind"] == {"kill": 3, "stop": 4}


def test_explore_writes_a_page_of_what_it_reached_and_of_the_shrunk_run_made_once_more(
    ground: Ground, story: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def explore(*_: Any, **__: Any) -> Exploration:
        return msgspec.structs.replace(exploration(Verdict.FAIL), saved_scenario=str(story))

    monkeypatch.setattr("harness.explore.exploration.explore", explore)
    result = jobsworth("explore", "--html", tmp_path / "page")
    assert result.exit_code == 1
    page = (tmp_path / "page" / "index.html").read_text(encoding="utf-8")
    assert "stop 4, kill 3" in page
    assert "Something happens." in page
    assert [(job.scenario.name, job.mode, job.source) for job in ground.jobs] == [("a-story", "simulated", str(story))]


@pytest.mark.usefixtures("ground")
def test_the_page_of_an_exploration_that_found_nothing_has_no_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.explore.exploration.explore", lambda *_, **__: exploration(Verdict.PASS))
    assert jobsworth("explore", "--html", tmp_path).exit_code == 0
    assert 'id="run-0"' not in (tmp_path / "index.html").read_text(encoding="utf-8")


# -- wrong use


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (["check", "no.such:thing"], "'no.such:thing': no module 'no'"),
        (["check", "--scenario", "hapy-path"], "no such scenario, did you mean 'happy-path'?"),
        (["check", "--scenario", "missing.yaml"], "missing.yaml: No such file or directory"),
        (["check", "--mode", "patched"], "reference cannot run patched; it can run simulated, process"),
        (["check", "--mode", "sideways"], "'sideways' is not one of 'simulated', 'patched', 'process'"),
        (["check", "--json", "no/such/dir/report.json"], "--json no/such/dir/report.json: no directory no/such/dir"),
        (["check", "--"], "there is no command after --"),
        (["check", "--seed", "-1"], "-1 is not in the range x>=0"),
        (["replay"], "Missing argument 'FILE|NAME'"),
        (["replay", "hapy-path"], "did you mean 'happy-path'?"),
        (["explore", "no.such:thing"], "'no.such:thing': no module 'no'"),
        (["explore", "--examples", "0"], "0 is not in the range x>=1"),
        (["list", "rule"], "'rule' is not one of 'scenarios', 'rules', 'faults', 'dialects', 'contracts'"),
        (["chekc"], "No such command 'chekc'"),
    ],
)
def test_wrong_use_ends_with_2_and_says_what_is_wrong(ground: Ground, args: list[str], complaint: str) -> None:
    result = jobsworth(*args)
    assert result.exit_code == 2
    assert complaint in result.stderr
    assert result.stdout == ""
    assert ground.jobs == []


def test_every_mistake_in_a_story_is_shown_with_its_line(ground: Ground, story: Path) -> None:
    story.write_text(f"{STORY}workrs: 2\nseeed: 1\n", encoding="utf-8")
    result = jobsworth("check", "--scenario", story)
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: 2 mistakes\n")
    assert f"{story}:5: workrs: unknown key, did you mean 'workers'?" in result.stderr
    assert f"{story}:6: seeed: unknown key, did you mean 'seed'?" in result.stderr


def test_a_story_that_can_be_run_nowhere_is_wrong_use_if_it_was_asked_for(ground: Ground, story: Path) -> None:
    story.write_text(f"{STORY}modes: [process]\n", encoding="utf-8")
    result = jobsworth("replay", story, "--mode", "simulated")
    assert result.exit_code == 2
    assert "a-story runs process; --mode simulated rules that out" in result.stderr


def test_a_story_that_can_be_run_nowhere_is_left_out_if_all_are_run(ground: Ground) -> None:
    ground.modes = ("process",)
    jobsworth("check")
    assert {job.mode for job in ground.jobs} == {"process"}


# -- list


@pytest.mark.parametrize(
    ("kind", "known", "keys"),
    [
        ("scenarios", "lost-create-response", {"requirements", "modes", "faults"}),
        ("rules", "one-job-per-operation", {"requirement", "needs"}),
        ("faults", "answer_lost", {"commit_points"}),
        ("dialects", "jobs", set()),
        ("contracts", "careful", set()),
    ],
)
def test_list_shows_what_there_is_to_people_and_to_machines(kind: str, known: str, keys: set[str]) -> None:
    shown = jobsworth("list", kind)
    assert shown.exit_code == 0
    assert any(line.startswith(f"{known} ") for line in shown.stdout.splitlines())
    items = {item["id"]: item for item in json.loads(jobsworth("list", kind, "--json", "-").stdout)}
    assert {"id", "summary"} | keys <= set(items[known])
    assert all(item["summary"] for item in items.values())


def test_the_places_of_a_fault_are_listed_as_addresses_have_them() -> None:
    items = {item["id"]: item for item in json.loads(jobsworth("list", "faults", "--json", "-").stdout)}
    assert "create:committed" in items["answer_lost"]["commit_points"]


# -- how it ends


class Ending:
    """A command line that ends with an exception."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def main(self, **_: object) -> None:
        raise self.error


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (ZeroDivisionError("ours"), 3, "This is a bug in jobsworth, not in the client under test."),
        (click.Abort(), 130, "interrupted"),
        (click.UsageError("no"), 2, "no"),
    ],
    ids=["a bug of our own is no verdict on the client", "an interrupt is none either", "wrong use"],
)
def test_a_run_that_breaks_off_is_neither_pass_nor_fail(
    error: BaseException,
    code: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("harness.cli.cli", Ending(error))
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == code
    assert said in capsys.readouterr().err


def test_help_needs_none_of_the_machinery() -> None:
    """Heavy imports are inside the commands, or ``jobsworth --help`` would take a second."""
    code = (
        "import sys, harness.cli\n"
        "heavy = {'aiohttp', 'hypothesis', 'httpx2', 'pydantic', 'rich', 'ruamel.yaml', 'asyncio'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)  # noqa: S603
    assert done.stdout.strip() == "[]"


def test_a_run_in_virtual_time_loads_no_server() -> None:
    code = (
        "import sys\n"
        "from harness.runner import run\n"
        "from harness.subjects import resolve\n"
        "from scenarios.loading import find\n"
        "print(run(find('happy-path'), resolve()).outcome.verdict, 'aiohttp' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)  # noqa: S603
    assert done.stdout.strip() == "pass False"


def test_a_locale_without_arrows_gets_them_spelt_out() -> None:
    code = "from harness.cli import main; main()"
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code, "replay", "happy-path"],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        timeout=30,
        check=True,
    )
    assert rb"create_pending \u2192 accepted" in done.stdout


def test_the_command_line_as_a_program_shows_no_traceback_for_wrong_use() -> None:
    code = "from harness.cli import main; main()"
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code, "replay", "hapy-path"], capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("Error: hapy-path: no such scenario, did you mean 'happy-path'?")
    assert "Traceback" not in done.stderr
