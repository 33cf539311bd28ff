"""The garbage collector is kept out of the way of runs."""

import gc
from collections.abc import Iterator

import pytest

from harness.garbage import heap_set_aside
from harness.runner import Job, run, run_many
from harness.subjects import resolve
from scenarios.loading import find


def test_what_was_there_before_is_not_looked_at_and_comes_back_afterwards() -> None:
    with heap_set_aside():
        assert gc.get_freeze_count() > 0
    assert gc.get_freeze_count() == 0


def test_it_comes_back_also_when_a_run_fails() -> None:
    with pytest.raises(ZeroDivisionError), heap_set_aside():
        _ = 1 / 0
    assert gc.get_freeze_count() == 0


def test_what_somebody_else_has_frozen_stays_frozen() -> None:
    gc.freeze()
    try:
        with heap_set_aside():
            pass
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()


class Collections:
    """At each collection: whether the heap was frozen, and after how many more a full one would be considered."""

    def __init__(self) -> None:
        self.seen: list[tuple[bool, int]] = []

    def __call__(self, _phase: str, _info: dict[str, int]) -> None:
        self.seen.append((gc.get_freeze_count() > 0, gc.get_threshold()[2]))


@pytest.fixture
def collections() -> Iterator[Collections]:
    collections = Collections()
    gc.callbacks.append(collections)
    yield collections
    gc.callbacks.remove(collections)


def test_runs_at_a_stretch_are_made_with_the_heap_set_aside(collections: Collections) -> None:
    run_many([Job(scenario=find("happy-path"), subject=resolve(), mode="simulated")] * 3)
    assert any(frozen for frozen, _ in collections.seen)


def test_a_single_run_is_made_without_full_collections_and_freezes_nothing(collections: Collections) -> None:
    before = gc.get_threshold()
    run(find("happy-path"), resolve())
    assert any(after > 1_000_000 for _, after in collections.seen)
    assert not any(frozen for frozen, _ in collections.seen)
    assert gc.get_threshold() == before
