"""Only the first entries of a history name the job."""

import msgspec

from harness.subject import Client, Host, Recorded
from harness.subjects.reference import build_with
from tests.broken_clients._parts import noting

SCENARIO = "happy-path"
CAUGHT_BY = "entries-name-the-job"


def bend(said: Recorded) -> Recorded | None:
    return said if said.after == "accepted" else msgspec.structs.replace(said, remote_job=None)


def build(host: Host) -> Client:
    return build_with(noting(host, bend))
