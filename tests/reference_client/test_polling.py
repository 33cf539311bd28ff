"""Retry-After in both forms and in all its bad ones; back-off with jitter (W4.2)."""

from email.utils import formatdate
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reference_client.polling import backoff_s, read_retry_after

NOW = 1_767_225_600.0


@pytest.mark.parametrize(("value", "delay"), [("0", 0.0), ("7", 7.0), (" 7 ", 7.0), ("120", 120.0)])
def test_whole_seconds_are_obeyed(value: str, delay: float) -> None:
    assert read_retry_after({"retry-after": value}, NOW).delay_s == delay


def test_a_date_is_obeyed() -> None:
    headers = {"retry-after": formatdate(NOW + 30, usegmt=True)}
    assert read_retry_after(headers, NOW).delay_s == 30


def test_a_date_is_compared_with_the_answers_own_date_so_that_clocks_need_not_agree() -> None:
    headers = {"retry-after": formatdate(NOW + 30, usegmt=True), "date": formatdate(NOW, usegmt=True)}
    assert read_retry_after(headers, NOW + 3600).delay_s == 30


def test_a_date_in_the_past_asks_for_no_wait() -> None:
    assert read_retry_after({"retry-after": formatdate(NOW - 30, usegmt=True)}, NOW).delay_s == 0


@pytest.mark.parametrize("value", ["-1", "1.5", "soon", "", "1e3", "٣", "Wed, 99 Foo 2026 00:00:00 GMT", "1 2", "0x10"])
def test_anything_else_is_not_used_and_noted(value: str) -> None:
    found = read_retry_after({"retry-after": value}, NOW)
    assert found.delay_s is None
    assert found.note is not None
    assert "Retry-After" in found.note


def test_no_header_is_nothing_to_note() -> None:
    found = read_retry_after({}, NOW)
    assert (found.delay_s, found.note) == (None, None)


def test_a_huge_number_stays_a_number() -> None:
    delay = read_retry_after({"retry-after": "9" * 400}, NOW).delay_s
    assert delay is not None
    assert delay == 10 * 365 * 86_400


@given(st.text(max_size=60), st.text(max_size=40))
@example("Thu, 01 Jan 1970 00:00:60 GMT", "")
@example("Mon, 01 Jan 0000 00:00:00 GMT", "Mon, 01 Jan 99999 00:00:00 GMT")
def test_no_text_makes_it_fail_and_no_delay_is_negative(value: str, date: str) -> None:
    found = read_retry_after({"retry-after": value, "date": date}, NOW)
    assert found.delay_s is None or found.delay_s >= 0


def test_waits_double_up_to_the_cap() -> None:
    waits = [backoff_s(n, first_s=2, cap_s=60, jitter=0, random=Random(1)) for n in range(8)]
    assert waits == [2, 4, 8, 16, 32, 60, 60, 60]


@given(st.integers(0, 10_000), st.integers())
def test_jitter_spreads_a_wait_by_its_fraction_and_never_past_the_cap(misses: int, seed: int) -> None:
    wait = backoff_s(misses, first_s=2, cap_s=60, jitter=0.1, random=Random(seed))
    exact = min(60, 2 * 2 ** min(misses, 10))
    assert exact * 0.9 <= wait <= min(60, exact * 1.1)


def test_two_waits_differ() -> None:
    random = Random(1)
    assert len({backoff_s(0, first_s=2, cap_s=60, jitter=0.1, random=random) for _ in range(20)}) > 15
