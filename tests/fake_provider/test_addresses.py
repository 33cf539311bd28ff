"""Text to address and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_provider.addresses import EVERY, Address, AddressError
from fake_provider.facts import CommitPoint, Endpoint


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("create#1:committed", Address(Endpoint.CREATE, CommitPoint.COMMITTED)),
        ("create:committed", Address(Endpoint.CREATE, CommitPoint.COMMITTED)),
        ("status#3:delivered@op-2", Address(Endpoint.STATUS, CommitPoint.DELIVERED, 3, operation="op-2")),
        ("cancel#1:received@w1", Address(Endpoint.CANCEL, CommitPoint.RECEIVED, worker="w1")),
        ("store[accepted]#1:committed", Address(Endpoint.STORE, CommitPoint.COMMITTED, state="accepted")),
        ("result#*:received", Address(Endpoint.RESULT, CommitPoint.RECEIVED, EVERY)),
    ],
)
def test_text_names_a_place(text: str, address: Address) -> None:
    assert Address.parse(text) == address


LETTERS = "abcdefghijklmnopqrstuvwxyz"
NAMES = st.builds(str.__add__, st.sampled_from(LETTERS[:22]), st.text(f"{LETTERS}0123456789-", max_size=20))
"""Of operations. Workers are told from them by a w and digits."""


@given(
    st.builds(
        Address,
        endpoint=st.sampled_from([endpoint for endpoint in Endpoint if endpoint is not Endpoint.STORE]),
        point=st.sampled_from(CommitPoint),
        occurrence=st.integers(0, 10**6),
        operation=st.none() | NAMES,
    )
)
def test_an_address_is_written_as_it_is_read(address: Address) -> None:
    assert Address.parse(str(address)) == address


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "is no address; write endpoint#occurrence:point"),
        ("create", "is no address"),
        ("create#x:committed", "is no address"),
        ("make#1:committed", "'make' is no endpoint; one of create, status"),
        ("create#1:later", "'later' is no commit point; one of before_receipt"),
        ("create#0:committed", "write #\\* for all of them"),
        ("create[accepted]#1:committed", "only a store address"),
    ],
)
def test_other_text_is_refused_with_what_is_valid(text: str, complaint: str) -> None:
    with pytest.raises(AddressError, match=complaint):
        Address.parse(text)
