"""The report names the client's own id where the provider's belongs."""

import msgspec

from harness.subject import Claim, Client, Host
from harness.subjects.reference import build_with
from tests.broken_clients._parts import Claiming

SCENARIO = "happy-path"
CAUGHT_BY = "claims-match-ledger"
ALSO_CAUGHT_BY = ("no-orphaned-jobs",)


def says(claim: Claim) -> Claim | None:
    return msgspec.structs.replace(claim, remote_job=claim.operation)


def build(host: Host) -> Client:
    return Claiming(host, build_with(host), says)
