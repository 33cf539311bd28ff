"""A cancel that is not confirmed at once is claimed to be unconfirmed."""

import msgspec

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.config import Timing

SCENARIO = "cancel-never-confirmed"
CAUGHT_BY = "cancel-unconfirmed-only-after-deadline"


def clocks(timing: Timing) -> Timing:
    return msgspec.structs.replace(timing, cancel_deadline_s=timing.cancel_deadline_s / 10)


def build(host: Host) -> Client:
    return build_with(host, timing=clocks)
