"""A failed call is recorded with all its headers, the credential among them."""

import msgspec

from harness.subject import Client, Host, Recorded
from harness.subjects.reference import build_with
from tests.broken_clients._parts import noting

SCENARIO = "happy-path"
CAUGHT_BY = "no-secrets-recorded"


def build(host: Host) -> Client:
    def bend(said: Recorded) -> Recorded | None:
        return msgspec.structs.replace(said, reason=f"{said.reason}; sent with {host.authorization}")

    return build_with(noting(host, bend))
