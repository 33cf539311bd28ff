"""Wiring only: the profiles under which Hypothesis runs. What a test needs stands beside the test."""

import os

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
