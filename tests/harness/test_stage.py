"""What workers say goes into the history, without their secrets and in whole characters."""

import pytest

from fake_provider.facts import Fact
from harness.history import Claimed, History, SecretSaid, SubjectComplained
from harness.stage import Notebook
from harness.subject import Claim


@pytest.fixture
def history() -> History:
    return History(lambda: 0.0)


@pytest.fixture
def notebook(history: History) -> Notebook:
    return Notebook(history.record, ["sk-canary-1"])


def facts(history: History) -> list[Fact]:
    return [entry.fact for entry in history]


def test_a_secret_in_a_worker_s_words_is_reported_and_not_kept(notebook: Notebook, history: History) -> None:
    notebook.write("w1", "log", SubjectComplained(worker="w1", message="sent Bearer sk-canary-1 to the provider"))
    assert facts(history) == [
        SecretSaid(worker="w1", where="log"),
        SubjectComplained(worker="w1", message="sent Bearer [secret] to the provider"),
    ]


def test_a_claim_is_written_down_with_whether_it_rests(notebook: Notebook, history: History) -> None:
    notebook.take_claim("w1", Claim(operation="op-1", state="observing"))
    assert facts(history) == [Claimed(operation="op-1", worker="w1", state="observing", at_rest=False)]


def test_half_a_character_is_replaced_and_the_history_can_still_be_written(
    notebook: Notebook, history: History
) -> None:
    notebook.write("w1", "log", SubjectComplained(worker="w1", message="odd \ud800 text"))
    assert facts(history) == [SubjectComplained(worker="w1", message="odd ? text")]
    assert b"odd ? text" in history.to_jsonl()


def test_nothing_is_written_once_the_notebook_is_closed(notebook: Notebook, history: History) -> None:
    notebook.close()
    notebook.write("w1", "log", SubjectComplained(worker="w1", message="too late"))
    assert facts(history) == []
