"""Tokens are taken for a matter of course: the create is sent again although this provider knows none."""

import msgspec

from harness.subject import Client, Host
from harness.subjects.reference import build_with
from reference_client.config import Idempotency, Terms

SCENARIO = "no-way-to-reconcile"
CAUGHT_BY = "no-blind-resend"
ALSO_CAUGHT_BY = ("one-job-per-operation",)


def believes(terms: Terms) -> Terms:
    return msgspec.structs.replace(terms, idempotency=Idempotency())


def build(host: Host) -> Client:
    return build_with(host, terms=believes)
