"""Wiring only: the order of tests, how they are spread, and the profiles under which Hypothesis runs. What a test needs
stands beside the test.
"""

import gc
import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "default",
    deadline=None,  # a slow machine is no failure
    derandomize=True,  # the same tests on every run; `--hypothesis-profile hunt` looks for new failures
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("hunt", settings.get_profile("default"), derandomize=False, max_examples=2_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: a fifth of the time, somebody waits for programs in real time."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect without the garbage collector, which would look through thousands of tests again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put what waits for programs in real time first, not last, when nobody has anything left to do meanwhile."""
    items.sort(key=lambda item: not item.nodeid.startswith(("tests/end_to_end/", "tests/project/")))
