"""The transport sends a cancel that failed again at once, eight times."""

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from tests.broken_clients._parts import Retrying, sending

SCENARIO = "cancel-fails-for-a-while"
CAUGHT_BY = "cancels-per-intent-limited"
ALSO_CAUGHT_BY = ("intent-before-outside-call",)


def build(host: Host) -> Client:
    return build_with(sending(host, Retrying(host.transport, "DELETE", "", tries=8)))
