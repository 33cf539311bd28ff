"""While the result is still being collected success is claimed already."""

from collections.abc import Sequence

import msgspec

from harness.subject import Claim, Client, Host
from tests.correct_clients._plain import PlainClient

SCENARIO = "result-fails-for-a-while"
CAUGHT_BY = "result-retrieved-before-success"


class Broken(PlainClient):
    async def report(self) -> Sequence[Claim]:
        return [
            msgspec.structs.replace(claim, state="succeeded") if claim.state == "result_collecting" else claim
            for claim in await super().report()
        ]


def build(host: Host) -> Client:
    return Broken(host)
