"""The job id is kept in the worker's memory; nothing durable ever names it."""

import msgspec

from harness.subject import Client, Host, Recorded
from harness.subjects.reference import build_with
from tests.broken_clients._parts import noting

SCENARIO = "happy-path"
CAUGHT_BY = "observing-only-after-accepted"


def bend(said: Recorded) -> Recorded | None:
    return msgspec.structs.replace(said, remote_job=None)


def build(host: Host) -> Client:
    return build_with(noting(host, bend))
