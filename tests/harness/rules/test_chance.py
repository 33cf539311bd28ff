"""What may have been drawn by full jitter, and what chance would not bring about."""

from random import Random

from harness.rules.chance import could_be_full_jitter

FIRST_S, CAP_S = 0.5, 2.0


def drawn(random: Random, many: int) -> list[float]:
    return [random.uniform(0, min(CAP_S, FIRST_S * 2**number)) for number in range(many)]


def may_be(waits_s: list[float]) -> bool:
    return could_be_full_jitter(waits_s, FIRST_S, CAP_S)


def test_what_full_jitter_draws_is_believed_every_time() -> None:
    random = Random(1)
    assert all(may_be(drawn(random, many)) for _ in range(2000) for many in (1, 2, 5, 12, 30))


def test_a_timer_that_ticks_may_round_what_is_drawn() -> None:
    random = Random(2)
    ticking = [[0.1 * (1 + wait_s // 0.1) for wait_s in drawn(random, 20)] for _ in range(2000)]
    assert all(map(may_be, ticking))


def test_one_short_wait_proves_nothing() -> None:
    assert may_be([0.0])
    assert may_be([0.5, 0.01])


def test_waits_of_one_length_are_not_drawn() -> None:
    assert not may_be([0.5] * 9)
    assert not may_be([0.9, 1.1, 1.0, 0.95, 1.05, 1.0] * 2)


def test_every_other_wait_next_to_nothing_is_not_drawn() -> None:
    assert not may_be([0.05, 0.5, 0.05, 1, *[0.05, 2, 0.05, 1.5] * 4])


def test_waits_that_grow_are_believed() -> None:
    assert may_be([0.5, 1.0, 2.0, 2.0])


def test_a_cap_that_is_far_away_makes_it_plain_sooner() -> None:
    assert not could_be_full_jitter([0.5] * 7, 0.5, 60)
