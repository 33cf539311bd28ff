"""The lease is given back after each step, and any worker may take the next one."""

from harness.subject import Client, Host
from tests.correct_clients._plain import PlainClient


class Variant(PlainClient):
    releases = True


def build(host: Host) -> Client:
    return Variant(host)
