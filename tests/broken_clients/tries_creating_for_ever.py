"""The create deadline is taken for a suggestion."""

import msgspec

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.config import Timing

SCENARIO = "create-never-answered"
CAUGHT_BY = "no-create-after-deadline"


def clocks(timing: Timing) -> Timing:
    return msgspec.structs.replace(timing, create_deadline_s=timing.create_deadline_s * 10)


def build(host: Host) -> Client:
    return build_with(host, timing=clocks)
