"""Keeps the garbage collector out of the way of runs."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["heap_set_aside"]


@contextmanager
def heap_set_aside() -> Iterator[None]:
    """Let the garbage collector look only at what is made from here on.

    A full collection of a large heap, as that of a test suite is, takes a second and more. A run in real time would
    stand still meanwhile, and its client run into a time-out that is no part of the story. A heap that somebody has
    frozen already is left as it is.
    """
    is_ours = gc.get_freeze_count() == 0
    if is_ours:
        gc.freeze()
    try:
        yield
    finally:
        if is_ours:
            gc.unfreeze()
