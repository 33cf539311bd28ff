"""Waits grow as they should, and are never drawn: every client of this make comes back at the same moment."""

import msgspec

from harness.subject import Client, Host
from harness.subjects.reference import build_with

SCENARIO = "two-long-jobs-side-by-side"
CAUGHT_BY = "waits-are-jittered"


def build(host: Host) -> Client:
    return build_with(host, timing=lambda timing: msgspec.structs.replace(timing, poll_jitter=0.0))
