"""What is claimed does not come from the record."""

import msgspec

from harness.subject import Claim, Client, Host
from harness.subjects.reference import build_with
from tests.broken_clients._parts import Claiming

SCENARIO = "result-damaged"
CAUGHT_BY = "claims-match-history"


def says(claim: Claim) -> Claim | None:
    lost = claim.state == "result_validation_failed"
    return msgspec.structs.replace(claim, state="result_unavailable") if lost else claim


def build(host: Host) -> Client:
    return Claiming(host, build_with(host), says)
