"""History entries say what changed, not why."""

import msgspec

from harness.subject import Client, Host, Recorded
from harness.subjects.reference import build_with
from tests.broken_clients._parts import noting

SCENARIO = "happy-path"
CAUGHT_BY = "entries-say-who-and-why"


def bend(said: Recorded) -> Recorded | None:
    return msgspec.structs.replace(said, reason="")


def build(host: Host) -> Client:
    return build_with(noting(host, bend))
