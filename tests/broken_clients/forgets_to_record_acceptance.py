"""Acceptance is stored in the status field and not in the history."""

from harness.subject import Client, Host, Recorded
from harness.subjects.reference import build_with
from tests.broken_clients._parts import noting

SCENARIO = "happy-path"
CAUGHT_BY = "history-continuous"


def bend(said: Recorded) -> Recorded | None:
    return None if said.after == "accepted" else said


def build(host: Host) -> Client:
    return build_with(noting(host, bend))
