"""The result deadline is read in the wrong unit: a tenth of what was meant."""

import msgspec

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.config import Timing
from tests.broken_clients._parts import story

SCENARIO = story("job-ends-after-a-while")
CAUGHT_BY = "timed-out-only-after-deadline"


def clocks(timing: Timing) -> Timing:
    return msgspec.structs.replace(timing, result_deadline_s=timing.result_deadline_s / 10)


def build(host: Host) -> Client:
    return build_with(host, timing=clocks)
