"""One lease is held for the whole of a job."""

from harness.subject import Client, Host
from tests.correct_clients._plain import PlainClient


class Variant(PlainClient):
    """As it is."""


def build(host: Host) -> Client:
    return Variant(host)
