"""The look-up of another provider is used with this one."""

import msgspec

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.config import Lookup, LookupTerms, Terms

SCENARIO = "lookup-instead-of-token"
CAUGHT_BY = "reconciles-by-offered-path"


def believes(terms: Terms) -> Terms:
    return msgspec.structs.replace(terms, lookup=LookupTerms(by=Lookup.OPERATION_ID))


def build(host: Host) -> Client:
    return build_with(host, terms=believes)
