"""Keeps the garbage collector out of the way of runs.

A full collection of a large heap, as that of a test suite is, takes a second and more. A run in real time would stand
still meanwhile, and its client run into a time-out that is no part of the story.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

__all__ = ["full_collections_put_off", "heap_set_aside"]

_NEVER: Final = 2**31 - 1


@contextmanager
def heap_set_aside() -> Iterator[None]:
    """Let the garbage collector look only at what is made from here on: for many runs at a stretch. A heap that
    somebody has frozen already is left as it is.

    What is garbage by the end is found by a full collection only. Where single runs are made again and again, it would
    pile up: they are made with :func:`full_collections_put_off`.
    """
    is_ours = gc.get_freeze_count() == 0
    if is_ours:
        gc.freeze()
    try:
        yield
    finally:
        if is_ours:
            gc.unfreeze()


@contextmanager
def full_collections_put_off() -> Iterator[None]:
    """Let the garbage collector look at what is young only: for one run, in which little grows old."""
    young, middle, old = gc.get_threshold()
    gc.set_threshold(young, middle, _NEVER)
    try:
        yield
    finally:
        gc.set_threshold(young, middle, old)
