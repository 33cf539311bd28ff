"""Facts in one order, on disk and back."""

from pathlib import Path

import pytest

from harness.history import Entry, History, HistoryError, WorkerEnded, WorkerStarted


def two_facts() -> History:
    history = History(iter([0.0, 1.0000004]).__next__)
    history.record(WorkerStarted(worker="w1"))
    history.record(WorkerEnded(worker="w1", how="killed"))
    return history


def test_entries_are_numbered_and_timed_in_order() -> None:
    assert list(two_facts()) == [
        Entry(0, 0.0, WorkerStarted(worker="w1")),
        Entry(1, 1.0, WorkerEnded(worker="w1", how="killed")),
    ]


def test_a_history_written_is_read_back_equal(tmp_path: Path) -> None:
    history = two_facts()
    path = tmp_path / "history.jsonl"
    path.write_bytes(history.to_jsonl())
    again = History.load(path)
    assert list(again) == list(history)
    assert again.sha256() == history.sha256()


def test_an_observer_sees_each_entry_once() -> None:
    seen: list[Entry] = []
    history = History(lambda: 0.0, [seen.append])
    history.record(WorkerStarted(worker="w1"))
    assert seen == list(history)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{", "line 2.*truncated"),
        (b'{"seq":1,"at":0.0,"fact":{"fact":"worker_startled","worker":"w1"}}', "line 2.*worker_startled"),
        (b'{"seq":2,"at":0.0,"fact":{"fact":"worker_started","worker":"w1"}}', "line 2: expected seq 1, found 2"),
        (b'{"seq":1,"at":0.0,"fact":{"fact":"worker_started"}}', "line 2.*worker"),
    ],
)
def test_a_bad_line_is_named(line: bytes, reason: str) -> None:
    first = b'{"seq":0,"at":0.0,"fact":{"fact":"worker_started","worker":"w1"}}\n'
    with pytest.raises(HistoryError, match=reason):
        History.from_jsonl(first + line)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match=r"nowhere\.jsonl: No such file"):
        History.load(tmp_path / "nowhere.jsonl")
