"""Waits double without end: whoever has waited long is asked to wait as long again."""

import msgspec

from harness.subject import Client, Host
from harness.subjects.reference import build_with

SCENARIO = "much-longer-than-the-cap"
CAUGHT_BY = "waits-are-capped"


def build(host: Host) -> Client:
    return build_with(host, timing=lambda timing: msgspec.structs.replace(timing, poll_cap_s=1e9))
