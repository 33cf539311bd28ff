"""Where a fault may be placed, and which occurrence it strikes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

import pytest
from pydantic import TypeAdapter, ValidationError

from fake_provider.facts import CommitPoint, Endpoint, FaultsHealed, ProviderFact
from fake_provider.faults import FAMILIES, KINDS, AnyFault, Fault, FaultPlan, fault_kind
from fake_provider.faults.kinds import Places, places
from fake_provider.faults.plan import Strikes

if TYPE_CHECKING:
    from fake_provider.faults.course import Course

FAULT: TypeAdapter[AnyFault] = TypeAdapter(AnyFault)


def _fault(kind: str = "answer_lost", at: str = "create#1:committed", **parameters: Any) -> AnyFault:
    return FAULT.validate_python({"kind": kind, "at": at, **parameters})


def _struck_at(fault: AnyFault, exchanges: list[tuple[str | None, str]]) -> list[int]:
    """Return the numbers of those create exchanges (operation, worker) that the fault is to strike."""
    plan = FaultPlan([fault], record=lambda fact: None)
    return [
        number
        for number, (operation, worker) in enumerate(exchanges, start=1)
        if plan.begin(Endpoint.CREATE, operation=operation, worker=worker)
    ]


FIVE: list[tuple[str | None, str]] = [("op-1", "w1"), ("op-2", "w1"), ("op-1", "w2"), (None, "w2"), ("op-1", "w1")]


@pytest.mark.parametrize(
    ("address", "times", "expected"),
    [
        ("create:committed", 1, [1]),
        ("create#3:committed", 1, [3]),
        ("create#2:committed", 2, [2, 3]),
        ("create#4:committed", "until_healed", [4, 5]),
        ("create#*:committed", 1, [1, 2, 3, 4, 5]),
        ("create#1:committed@op-1", 1, [1]),
        ("create#2:committed@op-1", 1, [3]),
        ("create#*:committed@op-1", 1, [1, 3, 5]),
        ("create#2:committed@w2", 1, [4]),
        ("create#2:committed@w1", 5, [2, 5]),
        ("create#1:committed@op-9", 1, []),
    ],
)
def test_an_occurrence_is_counted_among_what_the_rest_of_the_address_matches(
    address: str, times: Any, expected: list[int]
) -> None:
    assert _struck_at(_fault(at=address, times=times), FIVE) == expected


def test_occurrences_count_from_the_start_of_the_run_even_for_a_fault_armed_later() -> None:
    plan = FaultPlan([], record=lambda fact: None)
    plan.begin(Endpoint.CREATE, operation=None, worker="w1")
    assert plan.arm(_fault(at="create#2:committed")) == 0
    assert plan.begin(Endpoint.CREATE, operation=None, worker="w1") == Strikes(1, {CommitPoint.COMMITTED: [0]})


def test_healing_disarms_everything_and_is_recorded() -> None:
    facts: list[ProviderFact] = []
    plan = FaultPlan([_fault(at="create#*:committed"), _fault()], record=facts.append)
    plan.has_struck(0, Endpoint.CREATE, CommitPoint.COMMITTED, exchange=1, worker="w1", operation=None)
    plan.heal()
    assert plan.begin(Endpoint.CREATE, operation=None, worker="w1") is None
    assert facts[1:] == [FaultsHealed(struck=1, planned=2)]
    assert [index for index, _ in plan.unstruck()] == [1]


def test_a_fault_armed_after_healing_strikes() -> None:
    plan = FaultPlan([_fault()], record=lambda fact: None)
    plan.heal()
    index = plan.arm(_fault())
    assert plan.is_armed(index)
    assert plan.begin(Endpoint.CREATE, operation=None, worker="w1") == Strikes(0, {CommitPoint.COMMITTED: [index]})


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_is_refused_everywhere_but_where_it_makes_sense(kind: str) -> None:
    cls = KINDS[kind]
    for endpoint in Endpoint:
        for point in CommitPoint:
            address = f"{endpoint}#1:{point}"
            if point in cls.strikes_at.get(endpoint, ()):
                assert str(_fault(kind, address).at) == address
            else:
                with pytest.raises(ValidationError) as refused:
                    _fault(kind, address)
                assert f"{kind} cannot strike at {endpoint}:{point}; it can at {cls.where()}" in str(refused.value)


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_has_one_line_that_says_what_it_does(kind: str) -> None:
    lines = (KINDS[kind].__doc__ or "").strip().splitlines()
    assert len(lines) == 1
    assert lines[0].endswith(".")
    assert KINDS[kind].summary() == lines[0]


def test_every_kind_is_in_one_family_and_every_family_lists_its_kinds() -> None:
    listed = [getattr(family, name) for family in FAMILIES for name in family.__all__]
    assert sorted(cls.name() for cls in listed) == sorted(KINDS)


@pytest.mark.parametrize(
    ("planned", "complaint"),
    [
        ({"kind": "answer_lost", "at": "create#0:committed"}, "occurrences count from 1"),
        ({"kind": "answer_lost", "at": "creates#1:committed"}, "'creates' is no endpoint"),
        ({"kind": "answer_lost", "at": 7}, "not 7"),
        ({"kind": "answer_lost", "at": "create#1:committed", "times": 0}, "greater than or equal to 1"),
        ({"kind": "answer_lost", "at": "create#1:committed", "times": "always"}, "until_healed"),
        ({"kind": "answer_lost", "at": "create#*:committed", "times": 2}, "strikes every time already"),
        ({"kind": "answer_lost", "at": "create#1:committed", "seconds": 2}, "Extra inputs"),
        ({"kind": "slow_answer", "at": "create#1:committed", "seconds": 0}, "greater than 0"),
        ({"kind": "webhook_lost", "at": "webhook#1:before_receipt@w1"}, "name an operation"),
        ({"kind": "anser_lost", "at": "create#1:committed"}, "answer_lost"),
    ],
)
def test_a_fault_that_is_written_wrong_is_refused_with_the_reason(planned: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValidationError, match=complaint.replace("*", r"\*")):
        FAULT.validate_python(planned)


@pytest.mark.parametrize("kind", KINDS)
def test_a_fault_is_written_as_it_is_read(kind: str) -> None:
    (endpoint, points), *_ = KINDS[kind].strikes_at.items()
    fault = _fault(kind, f"{endpoint}#2:{points[0]}")
    assert FAULT.validate_python(fault.model_dump(mode="json")) == fault


def test_two_kinds_of_one_name_are_refused() -> None:
    class Again(Fault):
        """Something."""

        strikes_at: ClassVar[Places] = places(Endpoint.CREATE, CommitPoint.COMMITTED)
        kind: Literal["kill"] = "kill"

        def strike(self, course: Course) -> None:
            raise NotImplementedError

    with pytest.raises(TypeError, match="the kind 'kill' is Kill's already"):
        fault_kind(Again)


def test_a_kind_without_places_is_refused() -> None:
    class Nowhere(Fault):
        """Something."""

        kind: Literal["nowhere"] = "nowhere"

        def strike(self, course: Course) -> None:
            raise NotImplementedError

    with pytest.raises(TypeError, match="strikes_at"):
        fault_kind(Nowhere)
