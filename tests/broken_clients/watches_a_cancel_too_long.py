"""What a cancel comes to is watched for twice as long as agreed."""

import msgspec

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.config import Timing

SCENARIO = "cancel-never-confirmed"
CAUGHT_BY = "no-poll-after-cancel-deadline"


def patient(timing: Timing) -> Timing:
    return msgspec.structs.replace(timing, cancel_deadline_s=2 * timing.cancel_deadline_s)


def build(host: Host) -> Client:
    return build_with(host, timing=patient)
