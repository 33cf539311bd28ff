"""A scenario file with mistakes is answered with every one of them, where it is and what would be right."""

from pathlib import Path
from textwrap import dedent

import pytest

from scenarios.loading import CATALOGUE, ScenarioError, find, find_contract, load, load_catalogue, parse

HEAD = """\
name: a-story
summary: Something happens.
steps:
  - {at: 0, do: submit, operation: op-1}
"""


def problems(text: str) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        parse(dedent(text), source="a-story.yaml")
    return [str(problem) for problem in caught.value.problems]


def test_a_misspelt_key_is_named_with_its_line_the_valid_keys_and_a_suggestion() -> None:
    found = problems(HEAD + "timing:\n  lease_s: 2\n  poll_frist_s: 1\n")
    assert len(found) == 1
    assert found[0].startswith("a-story.yaml:7: timing.poll_frist_s: unknown key, did you mean 'poll_first_s'?")
    assert "valid keys: request_timeout_s, poll_first_s, poll_cap_s" in found[0]


def test_all_mistakes_of_one_file_are_told_at_once_in_the_order_of_lines() -> None:
    found = problems(
        """\
        name: A Story
        summary: Something happens.
        ends: {op-1: [succeded]}
        steps:
          - {at: -1, do: submit, operation: op-1}
          - {at: 1, do: cancle, operation: op-1}
          - at: 2
            do: kill
        faults:
          - {kind: answer_lots, at: "create#1:committed"}
          - {kind: answer_lost, at: "creat#1:committed"}
        contract: {idempotency: {mechanism: heder}}
        """
    )
    assert [line.split(": ")[0] for line in found] == [
        f"a-story.yaml:{number}" for number in (1, 3, 5, 6, 7, 10, 11, 12)
    ]
    assert "did you mean 'succeeded'?" in found[1]
    assert "did you mean 'cancel'?" in found[3]
    assert found[4].startswith("a-story.yaml:7: steps[2].worker: missing key; valid keys: at, do, worker")
    assert "did you mean 'answer_lost'?" in found[5]
    assert "'creat' is no endpoint; one of create, status" in found[6]
    assert "did you mean 'header'?" in found[7]


def test_a_fault_where_its_kind_cannot_strike_is_refused_with_the_places_where_it_can() -> None:
    (found,) = problems(HEAD + 'faults:\n  - {kind: answer_cut, at: "create#1:received"}\n')
    assert found.startswith("a-story.yaml:6: faults[0]: answer_cut cannot strike at create:received; it can at ")


@pytest.mark.parametrize(
    ("more", "line", "complaint"),
    [
        ("  - {at: 2, do: cancel, operation: op-2}", 5, "'op-2' is not submitted before this step; submitted: op-1"),
        ("  - {at: 2, do: kill, worker: w2}", 5, "no such worker as 'w2'; there are w1"),
        ("ends: {op-2: [failed]}", 5, "no step submits 'op-2'; submitted: op-1"),
        ("jobs: {op-2: 1}", 5, "no step submits 'op-2'"),
        ("work: {op-2: {takes_s: 1}}", 5, "no step submits 'op-2'"),
        ('faults: [{kind: kill, at: "create#1:received@w7"}]', 5, "no such worker as 'w7'"),
        ('faults: [{kind: kill, at: "create#1:received@op-7"}]', 5, "no step submits 'op-7'"),
        ('  - {at: 1, do: arm, fault: {kind: kill, at: "create#1:received@w7"}}', 5, "no such worker as 'w7'"),
        ('faults: [{kind: kill, at: "webhook#1:delivered"}]', 5, "the contract has no webhooks"),
        ("work: {default: {heeds_cancel: false}}", 5, "only a contract with cancel.effect best_effort allows that"),
        ("modes: [process, process]", 5, "a mode is listed twice"),
        ("timing: {poll_cap_s: 0.1}", 5, "poll_cap_s (0.1) is under poll_first_s (0.5)"),
    ],
)
def test_what_is_well_formed_and_cannot_be_meant_is_refused(more: str, line: int, complaint: str) -> None:
    (found,) = problems(f"{HEAD}{more}\n")
    assert found.startswith(f"a-story.yaml:{line}: ")
    assert complaint in found


def test_steps_that_go_back_in_time_are_refused() -> None:
    (found,) = problems(HEAD.replace("at: 0", "at: 3") + "  - {at: 2, do: heal}\n")
    assert found.startswith("a-story.yaml:5: steps[1].at: goes back in time: 2.0 s after a step at 3.0 s")


def test_an_operation_that_an_address_would_read_as_a_worker_is_refused() -> None:
    (found,) = problems(HEAD.replace("op-1", "w1"))
    assert "'w1' would be read as a worker" in found


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "a-story.yaml:1: a scenario is a mapping with keys of name, summary"),
        ("- a\n- b\n", "a-story.yaml:1: a scenario is a mapping"),
        ("name: a\nname: b\n", "a-story.yaml:2: not YAML: found duplicate key"),
        ("name: [a\nsummary: b\n", "not YAML: "),
        ("name: *nowhere\n", "a-story.yaml:1: not YAML: found undefined alias"),
        ("a: \x07\n", "not YAML: "),
        (f"a: {'[' * 5_000}\n", "a-story.yaml: not YAML for people: nested too deeply"),
        (f"{HEAD}drain_s: 1.0e+300\n", "drain_s: found 1e+300; input should be less than or equal to 604800"),
    ],
)
def test_what_is_no_scenario_at_all_is_told_in_one_line(text: str, complaint: str) -> None:
    (found,) = problems(text)
    assert complaint in found


@pytest.mark.parametrize("odd", [".inf", ".nan"])
def test_times_are_finite(odd: str) -> None:
    (found,) = problems(HEAD.replace("at: 0", f"at: {odd}"))
    assert "finite" in found


def test_what_json_cannot_say_is_refused_in_parameters() -> None:
    (found,) = problems(HEAD.replace("operation: op-1", "operation: op-1, parameters: {day: 2024-03-01}"))
    assert found.startswith("a-story.yaml:4: steps[0].parameters.day: ")


def test_a_file_is_named_as_its_scenario(tmp_path: Path) -> None:
    path = tmp_path / "another-story.yaml"
    path.write_text(HEAD, encoding="utf-8")
    with pytest.raises(ScenarioError, match=r"another-story\.yaml:1: name: 'a-story' is not the file's name"):
        load(path)


def test_a_missing_file_is_told_by_name(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"missing\.yaml: No such file"):
        load(tmp_path / "missing.yaml")


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a-story.yaml"
    path.write_bytes(b"name: \xff\n")
    with pytest.raises(ScenarioError, match=r"is not UTF-8 text"):
        load(path)


def test_a_misspelt_name_is_answered_with_the_closest() -> None:
    with pytest.raises(ScenarioError, match=r"no such scenario, did you mean 'lost-create-response'\?"):
        find("lost-create-respnse")


def test_a_scenario_is_found_by_name_and_by_path() -> None:
    assert find("happy-path") == find(str(CATALOGUE / "happy-path.yaml")) == load_catalogue()["happy-path"]


def test_a_contract_is_found_by_name_and_by_path(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("name: mine\nlookup: {by: none, authoritative: false}\n", encoding="utf-8")
    assert find_contract("lookup-only").name == "lookup-only"
    assert find_contract(str(path)).name == "mine"


def test_mistakes_in_a_contract_are_told_as_those_in_a_scenario(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("name: mine\nlookup:\n  bye: none\n", encoding="utf-8")
    with pytest.raises(
        ScenarioError, match=r"mine\.yaml:3: lookup\.bye: unknown key, did you mean 'by'\?; valid keys: by"
    ):
        find_contract(str(path))
    with pytest.raises(ScenarioError, match=r"did you mean 'lookup-only'\?"):
        find_contract("lookup-onyl")


def test_a_misspelt_preset_in_a_story_is_told_with_its_line() -> None:
    (found,) = problems(HEAD + "contract: lookup-onyl\n")
    assert found.startswith("a-story.yaml:5: contract: there is no contract 'lookup-onyl'")
