"""A job that failed has no result, and so its operation is claimed to be one whose result cannot be had."""

import msgspec

from harness.subject import Claim, Client, Host
from harness.subjects.reference import build_with
from tests.broken_clients._parts import Claiming

SCENARIO = "job-fails"
CAUGHT_BY = "succeeded-only-if-remote-succeeded"
ALSO_CAUGHT_BY = ("end-that-was-read-is-claimed", "claims-match-history")


def says(claim: Claim) -> Claim | None:
    return msgspec.structs.replace(claim, state="result_unavailable") if claim.state == "failed" else claim


def build(host: Host) -> Client:
    return Claiming(host, build_with(host), says)
