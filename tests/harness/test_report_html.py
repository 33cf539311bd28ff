"""The page for a browser: complete, bounded, and safe whatever the client under test says."""

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from fake_provider.facts import CommitPoint, Endpoint, FaultStruck
from harness.history import History, SubjectComplained, WorkerStarted
from harness.report.html import FILE_NAME, MOST_BYTES, Shown, page, write
from harness.report.machine import report_of
from harness.verdict import Finding, LeftOut, Verdict
from tests.harness.hostile import HOSTILE, hostile_run, shown


def made(*runs: Shown, **rest: Any) -> str:
    return page(runs, report_of("a-client", 0, tuple(run.outcome for run in runs)), **rest)


def quiet(*names: str) -> History:
    history = History(lambda: 0.5)
    for name in names or ("w1",):
        history.record(WorkerStarted(worker=name))
    return history


class Elements(HTMLParser):
    """The elements of a page, as a browser would see them: (name, attributes, text)."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, dict[str, str | None], list[str]]] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs), []))

    def handle_data(self, data: str) -> None:
        if self.found:
            self.found[-1][2].append(data)

    def named(self, name: str) -> Iterator[tuple[dict[str, str | None], str]]:
        return ((attributes, "".join(text)) for tag, attributes, text in self.found if tag == name)


def data_of(html: str, name: str = "run-0") -> Any:
    return next(json.loads(text) for attributes, text in Elements(html).named("script") if attributes.get("id") == name)


# -- safe


def test_what_a_client_says_makes_no_element() -> None:
    """The page of a hostile run has the elements of the page of a harmless one."""
    harmless = shown(hostile_run().history, text="harmless", subject="harmless", logs={"w1": "harmless"})
    wanted = [tag for tag, _, _ in Elements(made(harmless)).found]
    history = hostile_run().history
    assert [tag for tag, _, _ in Elements(made(shown(history, text=HOSTILE, subject=HOSTILE))).found] == wanted


def test_hostile_text_is_nowhere_in_the_page_as_it_was() -> None:
    html = made(hostile_run(), notes={HOSTILE: HOSTILE})
    assert "window.broken = 1</script>" not in html
    assert "<img src=x" not in html
    assert "\u2028" not in html
    assert "\u202e" not in html
    assert "\x1b" not in html


def test_hostile_text_is_kept_with_its_control_characters_written_out() -> None:
    told = data_of(made(hostile_run()))["outcome"]["reproduce"]
    assert told.startswith("</script><script>window.broken = 1</script>")
    assert told.endswith(r"\u2028 \u202e \x00 \x1b[2J \ud800")


def test_the_policy_allows_the_pages_own_script_and_style_and_no_other() -> None:
    html = made(shown(quiet()))
    elements = Elements(html)
    policy = next(
        str(attributes["content"])
        for attributes, _ in elements.named("meta")
        if attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    (script,) = re.findall(r'<script type="module">(.*?)</script>', html, re.DOTALL)
    (style,) = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    for kind, text in (("script-src", script), ("style-src", style)):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind} 'sha256-{digest}'" in policy


def test_the_page_refers_to_nothing_outside_itself() -> None:
    for tag, attributes, _ in Elements(made(hostile_run())).found:
        assert "src" not in attributes, tag
        assert str(attributes.get("href", "#")).startswith(("#", "data:")), tag
        assert not any(name.startswith("on") or name == "style" for name in attributes), tag


def test_no_script_of_ours_reads_text_as_markup() -> None:
    html = made(shown(quiet()))
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|srcdoc", html)


# -- complete


def test_the_table_has_a_row_for_each_scenario_and_a_column_for_each_mode() -> None:
    runs = [shown(quiet(), text=name) for name in ("one", "two")]
    table = made(*runs).split("<tbody>")[1].split("</tbody>")[0]
    assert [name in table for name in ("one", "two")] == [True, True]
    assert table.count("<tr>") == 2
    assert ">simulated<" in made(*runs)


def test_several_subjects_have_a_column_each() -> None:
    html = made(shown(quiet(), subject="first"), shown(quiet(), subject="second"))
    assert '<th scope="col">first</th><th scope="col">second</th>' in html
    assert [run["id"] for run in data_of(html, "index")] == ["a-story/simulated/first", "a-story/simulated/second"]


def test_runs_of_one_scenario_in_one_place_are_told_apart() -> None:
    html = made(shown(quiet()), shown(quiet()))
    assert [run["id"] for run in data_of(html, "index")] == ["a-story/simulated", "a-story/simulated/2"]


def test_what_failed_stands_first() -> None:
    finding = Finding(rule="a-rule", requirement="W1.1", message="m", facts=(0,))
    html = made(shown(quiet(), text="good"), shown(quiet(), text="bad", findings=(finding,)))
    assert html.index(">bad<") < html.index(">good<")


def test_filters_know_rules_faults_and_workers() -> None:
    history = quiet("w1", "w2")
    history.record(
        FaultStruck(
            fault=0, kind="answer_lost", address="x", endpoint=Endpoint.CREATE, point=CommitPoint.COMMITTED, exchange=1
        )
    )
    finding = Finding(rule="a-rule", requirement="W1.1", message="it broke", facts=(0,))
    (entry,) = data_of(made(shown(history, findings=(finding,))), "index")
    assert (entry["rules"], entry["faults"], entry["workers"]) == (["a-rule"], ["answer_lost"], ["w1", "w2"])
    assert entry["text"] == "a-story a-story broken: a-story"
    assert entry["verdict"] == Verdict.FAIL


def test_a_run_has_its_facts_its_story_and_its_drawing() -> None:
    run = data_of(made(shown(quiet("w1", "w2"))))
    assert [fact["raw"] for fact in run["facts"]] == [
        {"fact": "worker_started", "worker": name} for name in ("w1", "w2")
    ]
    assert [line["text"] for line in run["story"]] == ["starts", "starts"]
    assert [lane["id"] for lane in run["lanes"]] == ["harness", "w1", "w2", "network", "provider"]
    assert [span["track"] for span in run["spans"]] == ["w1", "w2"]


def test_findings_are_pinned_each_to_its_own_place_though_they_say_the_same() -> None:
    findings = tuple(Finding(rule="a-rule", requirement="W1.1", message="m", facts=(0,)) for _ in range(2))
    run = data_of(made(shown(quiet(), findings=findings)))
    assert [line["finding"] for line in run["story"] if line["mark"] == "finding"] == [0, 1]


def test_a_scenario_that_does_not_apply_is_named_with_the_reason() -> None:
    left_out = (LeftOut(scenario="a-story", mode="process", reason="it has no webhooks"),)
    html = page([], report_of("a-client", 0, (), left_out))
    assert "it has no webhooks" in html
    assert "1 scenario does not apply" in html


def test_the_end_of_a_log_is_in_the_page() -> None:
    run = data_of(made(shown(quiet(), logs={"w1.1": "\n".join(f"line {n}" for n in range(100)), "w2.1": " \n"})))
    assert list(run["logs"]) == ["w1.1"]
    assert run["logs"]["w1.1"][-1] == "line 99"
    assert len(run["logs"]["w1.1"]) == 30


# -- bounded


def long_history(facts: int, message: str) -> History:
    history = History(lambda: 0.0)
    history.record(WorkerStarted(worker="w1"))
    for _ in range(facts):
        history.record(SubjectComplained(worker="w1", message=message))
    return history


def test_a_client_that_says_very_much_does_not_make_a_very_large_page() -> None:
    finding = Finding(rule="a-rule", requirement="W1.1", message="&" * 100_000, facts=(2_500,))
    findings = tuple(finding for _ in range(300))
    run = shown(long_history(5_000, "&" * 100_000), findings=findings, logs={"w1": "&\n" * 1_000_000})
    (text,) = re.findall(r'<script type="application/json" id="run-0">(.*?)</script>', made(run), re.DOTALL)
    assert len(text.encode()) <= MOST_BYTES


def test_of_a_very_long_run_the_page_keeps_beginning_end_and_proof_and_says_so() -> None:
    finding = Finding(rule="a-rule", requirement="W1.1", message="m", facts=(2_500,))
    run = data_of(made(shown(long_history(5_000, "again"), findings=(finding,))))
    kept = [fact["seq"] for fact in run["facts"]]
    assert {0, 1, 2_500, 5_000} <= set(kept)
    assert len(kept) < 1_600
    assert run["facts_in_all"] == 5_001
    assert {seq for line in run["story"] for seq in line["facts"]} <= set(kept)


def test_a_run_of_ordinary_length_is_kept_whole() -> None:
    run = data_of(made(shown(long_history(300, "again"))))
    assert len(run["facts"]) == run["facts_in_all"] == 301


def test_more_findings_than_anybody_reads_are_counted() -> None:
    findings = tuple(
        Finding(rule="a-rule", requirement="W1.1", message=str(number), facts=(0,)) for number in range(99)
    )
    run = data_of(made(shown(quiet(), findings=findings)))
    assert (len(run["outcome"]["findings"]), run["findings_in_all"]) == (40, 99)


# -- written


def test_the_page_is_one_file_in_a_folder_made_for_it(tmp_path: Path) -> None:
    path = write(tmp_path / "a" / "b", "the page")
    assert path == tmp_path / "a" / "b" / FILE_NAME
    assert path.read_text(encoding="utf-8") == "the page"


@pytest.mark.parametrize("runs", [(), (shown(quiet()),)])
def test_the_same_runs_make_the_same_page(runs: tuple[Shown, ...]) -> None:
    assert made(*runs) == made(*runs)
