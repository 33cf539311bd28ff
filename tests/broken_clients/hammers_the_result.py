"""The transport reads a result that failed again at once, eight times."""

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from tests.broken_clients._parts import Retrying, sending

SCENARIO = "result-fails-for-a-while"
CAUGHT_BY = "result-reads-limited"
ALSO_CAUGHT_BY = ("intent-before-outside-call",)


def build(host: Host) -> Client:
    return build_with(sending(host, Retrying(host.transport, "GET", "/result", tries=8)))
