"""A job that has succeeded is read once more before it is believed."""

from harness.subject import Client, Host
from tests.correct_clients._plain import PlainClient


class Variant(PlainClient):
    confirms = True


def build(host: Host) -> Client:
    return Variant(host)
