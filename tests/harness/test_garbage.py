"""The garbage collector is kept out of the way of runs."""

import gc

import pytest

from harness.garbage import heap_set_aside
from harness.runner import run
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


def test_every_run_is_made_so() -> None:
    seen = []

    def look(_phase: str, _info: dict[str, int]) -> None:
        seen.append(gc.get_freeze_count() > 0)

    gc.callbacks.append(look)
    try:
        before = len(seen)
        for _ in range(3):
            run(find("happy-path"), resolve())
    finally:
        gc.callbacks.remove(look)
    assert any(seen[before:])
