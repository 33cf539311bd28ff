"""An unanswered create is looked up first where that is offered."""

from harness.subject import Client, Host
from tests.correct_clients._plain import PlainClient


class Variant(PlainClient):
    looks_up_first = True


def build(host: Host) -> Client:
    return Variant(host)
