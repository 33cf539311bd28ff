"""Operations that failed are left out of the report."""

from harness.subject import Claim, Client, Host
from harness.subjects.reference import build_with
from tests.broken_clients._parts import Claiming

SCENARIO = "one-fails-one-succeeds"
CAUGHT_BY = "every-operation-is-claimed"


def says(claim: Claim) -> Claim | None:
    return None if claim.state == "failed" else claim


def build(host: Host) -> Client:
    return Claiming(host, build_with(host), says)
