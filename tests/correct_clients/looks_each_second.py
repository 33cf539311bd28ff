"""A program that a scheduler starts each second: what is due is done then, and its timer is no finer than that."""

from harness.subject import Client, Host
from tests.correct_clients._plain import PlainClient


class Scheduled(PlainClient):
    tick_s = 1.0


def build(host: Host) -> Client:
    return Scheduled(host)
