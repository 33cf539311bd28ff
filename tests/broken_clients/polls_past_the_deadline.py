"""The result deadline is that of another deployment, ten times as long."""

import msgspec

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.config import Timing

SCENARIO = "result-deadline-passes"
CAUGHT_BY = "no-poll-after-result-deadline"


def clocks(timing: Timing) -> Timing:
    return msgspec.structs.replace(timing, result_deadline_s=timing.result_deadline_s * 10)


def build(host: Host) -> Client:
    return build_with(host, timing=clocks)
