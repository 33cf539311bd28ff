"""The cancel call is made whether the provider has one or not."""

import msgspec

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.config import CancelTerms, Terms

SCENARIO = "cancel-not-offered"
CAUGHT_BY = "cancel-only-where-offered"


def believes(terms: Terms) -> Terms:
    return msgspec.structs.replace(terms, cancel=CancelTerms())


def build(host: Host) -> Client:
    return build_with(host, terms=believes)
