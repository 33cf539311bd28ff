"""The history tells of transitions; calls that change nothing leave no trace in it."""

from harness.subject import Client, Host, Recorded
from harness.subjects.reference import build_with
from tests.broken_clients._parts import noting

SCENARIO = "happy-path"
CAUGHT_BY = "intent-before-outside-call"


def bend(said: Recorded) -> Recorded | None:
    return said if said.before != said.after else None


def build(host: Host) -> Client:
    return build_with(noting(host, bend))
