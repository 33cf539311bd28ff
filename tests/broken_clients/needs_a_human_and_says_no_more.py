"""A person is to decide, and is not told what about."""

import msgspec

from harness.subject import Claim, Client, Host
from harness.subjects.reference import build_with
from tests.broken_clients._parts import Claiming

SCENARIO = "no-way-to-reconcile"
CAUGHT_BY = "human-decision-is-explained"


def says(claim: Claim) -> Claim | None:
    return msgspec.structs.replace(claim, explanation=None)


def build(host: Host) -> Client:
    return Claiming(host, build_with(host), says)
