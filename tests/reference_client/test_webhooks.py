"""Webhooks: believed when signed and in time, answered 2xx once durable, never more than a reason to look (W4.7)."""

from __future__ import annotations

import asyncio
import base64
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook

from reference_client.receiver import WebhookServer
from reference_client.stores.protocol import StoreRefused
from reference_client.stores.sqlite import SQLiteStore
from reference_client.webhooks import EventIntake, Verifier, WebhookRejected, WebhookSecretError

if TYPE_CHECKING:
    from collections.abc import Callable

    from reference_client.workflow import Workflow
    from tests.reference_client.conftest import ManualClock

NOW = 1_767_225_600
SECRET = "whsec_" + base64.b64encode(b"first secret").decode()
OTHER = "whsec_" + base64.b64encode(b"other secret").decode()
BODY = json.dumps(
    {"type": "job.succeeded", "data": {"id": "job_1", "status": "succeeded", "client_reference": "op-1"}}
).encode()


def signed(body: bytes = BODY, *, secret: str = SECRET, at: int = NOW, event: str = "evt_1") -> dict[str, str]:
    """Headers as the library of the standard makes them."""
    signature = Webhook(secret).sign(event, datetime.fromtimestamp(at, UTC), body.decode())
    return {"webhook-id": event, "webhook-timestamp": str(at), "webhook-signature": signature}


def rejected(headers: dict[str, str], body: bytes = BODY, *, secrets: tuple[str, ...] = (SECRET,)) -> str:
    with pytest.raises(WebhookRejected) as caught:
        Verifier(secrets).verify(headers, body, now=NOW)
    return caught.value.reason


def test_a_delivery_signed_by_the_standards_own_library_is_believed() -> None:
    verified = Verifier([SECRET]).verify(signed(), BODY, now=NOW)
    assert (verified.event_id, verified.body) == ("evt_1", BODY)


def test_header_names_may_have_any_case() -> None:
    headers = {name.title(): value for name, value in signed().items()}
    assert Verifier([SECRET]).verify(headers, BODY, now=NOW).event_id == "evt_1"


@pytest.mark.parametrize("secret", [SECRET, OTHER])
def test_while_secrets_are_rotated_either_is_enough(secret: str) -> None:
    assert Verifier([OTHER, SECRET]).verify(signed(secret=secret), BODY, now=NOW).event_id == "evt_1"


def test_any_one_signature_of_a_list_is_enough_and_malformed_ones_are_skipped() -> None:
    headers = signed()
    headers["webhook-signature"] = f"nonsense v1 v2,AAAA v1,*** v1,AAAA {headers['webhook-signature']}"
    assert Verifier([SECRET]).verify(headers, BODY, now=NOW).event_id == "evt_1"


def test_a_forged_altered_or_unsigned_delivery_is_not_believed() -> None:
    assert rejected(signed(secret=OTHER)) == "no_valid_signature"
    assert rejected(signed(), BODY + b" ") == "no_valid_signature"
    assert rejected(signed() | {"webhook-id": "evt_2"}) == "no_valid_signature"
    assert rejected(signed() | {"webhook-timestamp": str(NOW + 1)}) == "no_valid_signature"
    assert rejected(signed() | {"webhook-signature": ""}) == "no_valid_signature"
    assert rejected(signed(), secrets=()) == "no_valid_signature"


@pytest.mark.parametrize(("offset", "believed"), [(-300, True), (300, True), (-301, False), (301, False)])
def test_the_tolerance_is_on_both_sides_of_now(offset: int, *, believed: bool) -> None:
    if believed:
        assert Verifier([SECRET]).verify(signed(at=NOW + offset), BODY, now=NOW).event_id == "evt_1"
    else:
        assert rejected(signed(at=NOW + offset)) == "outside_tolerance"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"webhook-id": ""}, "no_usable_id"),
        ({"webhook-id": "x" * 300}, "no_usable_id"),
        ({"webhook-id": "é"}, "no_usable_id"),
        ({"webhook-timestamp": ""}, "no_usable_timestamp"),
        ({"webhook-timestamp": "soon"}, "no_usable_timestamp"),
        ({"webhook-timestamp": "1e9"}, "no_usable_timestamp"),
        ({"webhook-timestamp": "-5"}, "no_usable_timestamp"),
        ({"webhook-timestamp": "9" * 40}, "no_usable_timestamp"),
    ],
)
def test_headers_that_are_none_are_rejected_by_name(change: dict[str, str], reason: str) -> None:
    assert rejected(signed() | change) == reason


def test_a_body_has_a_limit() -> None:
    body = b"x" * ((1 << 20) + 1)
    assert rejected(signed(body), body) == "body_too_large"


@given(
    st.dictionaries(
        st.sampled_from(["webhook-id", "webhook-timestamp", "webhook-signature", "x"]), st.text(max_size=40), max_size=4
    ),
    st.binary(max_size=60),
)
def test_whatever_comes_is_rejected_and_nothing_else(headers: dict[str, str], body: bytes) -> None:
    rejected(headers, body)


@pytest.mark.parametrize("secret", ["", "whsec_", "first secret", "whsec_*", base64.b64encode(b"x").decode()])
def test_what_is_no_secret_is_refused_and_not_repeated(secret: str) -> None:
    with pytest.raises(WebhookSecretError) as caught:
        Verifier([secret])
    assert not secret or secret == "whsec_" or secret not in str(caught.value)


class _Deaf(SQLiteStore):
    async def take_event(self, *_: Any) -> Any:
        raise StoreRefused("disk full")


@pytest.fixture
def take(clock: ManualClock, make_workflow: Callable[..., Workflow]) -> Callable[..., list[int]]:
    """Deliver to an intake, one after the other; return the statuses and count the wakes."""

    def deliver(
        *deliveries: tuple[dict[str, str], bytes],
        store: type[SQLiteStore] = SQLiteStore,
        woken: list[int] | None = None,
    ) -> list[int]:
        async def run() -> list[int]:
            intake = EventIntake(
                verifier=Verifier([SECRET]),
                store=store(":memory:", now=clock.now),
                workflow=make_workflow(),
                clock=clock,
                actor="w1",
                wake=lambda: (woken if woken is not None else []).append(1),
            )
            return [await intake.take(headers, body) for headers, body in deliveries]

        return asyncio.run(run())

    return deliver


def test_a_delivery_is_answered_2xx_each_time_it_comes(take: Callable[..., list[int]]) -> None:
    assert take((signed(), BODY), (signed(), BODY)) == [204, 204]


def test_a_rejected_delivery_is_not(take: Callable[..., list[int]]) -> None:
    assert take((signed(secret=OTHER), BODY), (signed(at=NOW - 999), BODY)) == [401, 400]


def test_a_genuine_event_about_something_else_is_taken_and_forgotten(take: Callable[..., list[int]]) -> None:
    body = b'{"type":"ping"}'
    assert take((signed(body), body)) == [204]


def test_a_delivery_that_cannot_be_kept_is_to_come_again(take: Callable[..., list[int]]) -> None:
    assert take((signed(), BODY), store=_Deaf) == [503]


def test_the_receiver_on_a_socket_hands_over_headers_and_body_and_bounds_the_latter() -> None:
    seen: list[tuple[str, bytes]] = []

    async def take_one(headers: Any, body: bytes) -> int:
        seen.append((headers["Webhook-Id"], body))
        return 204

    async def run() -> list[int]:
        async with WebhookServer(take_one) as server, httpx2.AsyncClient(trust_env=False) as client:
            answers = [
                await client.post(server.url, content=BODY, headers=signed()),
                await client.post(server.url, content=b"x" * ((1 << 20) + 1), headers=signed()),
                await client.get(server.url),
            ]
        return [answer.status_code for answer in answers]

    assert asyncio.run(run()) == [204, 413, 405]
    assert seen == [("evt_1", BODY)]
