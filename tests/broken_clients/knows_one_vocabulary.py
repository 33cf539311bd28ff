"""The words for states are taken to be the same everywhere, whatever the contract says."""

import msgspec

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.config import StatusTerms, Terms

SCENARIO = "states-in-other-words"
CAUGHT_BY = "finished-result-not-lost"
ALSO_CAUGHT_BY = ("no-poll-after-terminal", "end-that-was-read-is-claimed")


def believes(terms: Terms) -> Terms:
    return msgspec.structs.replace(terms, status=StatusTerms())


def build(host: Host) -> Client:
    return build_with(host, terms=believes)
