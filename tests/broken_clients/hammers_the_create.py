"""The transport sends a create that failed again at once, eight times, with its token."""

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from tests.broken_clients._parts import Retrying, sending

SCENARIO = "create-fails-for-a-while"
CAUGHT_BY = "tries-per-create-limited"
ALSO_CAUGHT_BY = ("intent-before-outside-call",)


def build(host: Host) -> Client:
    return build_with(sending(host, Retrying(host.transport, "POST", "/v1/jobs", tries=8)))
