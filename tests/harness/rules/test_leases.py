"""Which lease a worker holds, as the rules see it."""

import pytest

from harness.history import Entry, LeaseNoted
from harness.rules.chronicle import Chronicle


def world(*notes: tuple[str, int]) -> Chronicle:
    seen = Chronicle()
    for seq, (what, fence) in enumerate(notes):
        seen.take(Entry(seq, 0.0, LeaseNoted(worker="w1", operation="op-1", what=what, fence=fence, lasts_s=2.0)))
    return seen


def test_a_worker_keeps_its_new_lease_when_it_finds_that_the_old_one_is_gone() -> None:
    # Frozen past its lease, a worker may take it anew before what it was in the midst of looks at the old one.
    held = world(("taken", 1), ("taken", 2), ("lost", 1)).operation("op-1").leases["w1"]
    assert held.fence == 2


@pytest.mark.parametrize("end", ["lost", "released"])
def test_a_lease_ends_when_its_holder_says_so(end: str) -> None:
    assert world(("taken", 1), ("renewed", 1), (end, 1)).operation("op-1").leases == {}
