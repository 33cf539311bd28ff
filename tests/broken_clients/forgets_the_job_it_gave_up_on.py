"""An operation that ended in doubt is reported without its job."""

import msgspec

from harness.subject import Claim, Client, Host
from harness.subjects.reference import build_with
from tests.broken_clients._parts import Claiming

SCENARIO = "cancel-never-confirmed"
CAUGHT_BY = "claims-name-the-job"
ALSO_CAUGHT_BY = ("no-orphaned-jobs",)


def says(claim: Claim) -> Claim | None:
    return msgspec.structs.replace(claim, remote_job=None)


def build(host: Host) -> Client:
    return Claiming(host, build_with(host), says)
