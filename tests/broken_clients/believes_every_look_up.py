"""A look-up that finds nothing is taken for proof, though the provider says that it lags behind."""

import msgspec

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.config import LookupTerms, Terms
from tests.broken_clients._parts import story

SCENARIO = story("look-up-lags-behind")
CAUGHT_BY = "absence-needs-authority"
ALSO_CAUGHT_BY = (
    "no-blind-resend",
    "one-job-per-operation",
)


def believes(terms: Terms) -> Terms:
    return msgspec.structs.replace(terms, lookup=LookupTerms(authoritative=True))


def build(host: Host) -> Client:
    return build_with(host, terms=believes)
