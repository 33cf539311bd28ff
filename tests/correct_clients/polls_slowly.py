"""The job is polled three times slower than it might be."""

from harness.subject import Client, Host
from tests.correct_clients._plain import PlainClient


class Variant(PlainClient):
    slowness = 3.0


def build(host: Host) -> Client:
    return Variant(host)
