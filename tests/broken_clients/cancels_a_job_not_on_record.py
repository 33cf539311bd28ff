"""The job id is kept in the worker's memory, and so the job that is cancelled is on no record."""

import msgspec

from harness.subject import Client, Host, Recorded
from harness.subjects.reference import build_with
from tests.broken_clients._parts import noting

SCENARIO = "cancel-race-cancel-wins"
CAUGHT_BY = "cancel-names-recorded-job"
ALSO_CAUGHT_BY = ("observing-only-after-accepted",)


def bend(said: Recorded) -> Recorded | None:
    return msgspec.structs.replace(said, remote_job=None)


def build(host: Host) -> Client:
    return build_with(noting(host, bend))
