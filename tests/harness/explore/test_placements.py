"""What can be placed where: every kind, every parameter, every commit point, and scenarios that hold it."""

import pytest

from fake_provider.facts import CommitPoint, Endpoint
from fake_provider.faults import KINDS
from harness.explore.placements import Place, Placement, plain_treatments, stage, treatments
from scenarios.dumping import dump
from scenarios.loading import parse
from scenarios.model import Scenario, Start, Submit

STORY = Scenario(name="story", summary="One operation.", steps=(Submit(at=0, operation="op-1"),))
PLACES = [Place(order=3, endpoint=each, occurrence=2, at=1.25, worker="w1") for each in Endpoint if treatments(each)]


@pytest.mark.parametrize("endpoint", [place.endpoint for place in PLACES])
def test_every_kind_is_tried_at_every_point_where_it_can_strike(endpoint: Endpoint) -> None:
    tried = {(each.kind, each.point) for each in treatments(endpoint)}
    assert tried == {(name, point) for name, kind in KINDS.items() for point in kind.strikes_at.get(endpoint, ())}
    assert {(each.kind, each.point) for each in plain_treatments(endpoint)} == tried
    assert len(plain_treatments(endpoint)) == len(tried)


@pytest.mark.parametrize("endpoint", [place.endpoint for place in PLACES])
def test_treatments_stand_in_the_order_of_their_rank_once_beside_until_healed(endpoint: Endpoint) -> None:
    found = treatments(endpoint)
    assert [each.rank for each in found] == list(range(len(found)))
    for once, lasting in zip(found[::2], found[1::2], strict=True):
        assert (once.kind, once.point, once.parameters) == (lasting.kind, lasting.point, lasting.parameters)
        assert (once.until_healed, lasting.until_healed) == (False, True)
    points = [list(CommitPoint).index(each.point) for each in found]
    assert points == sorted(points)


def test_every_choice_of_a_parameter_is_tried() -> None:
    forms = {dict(each.parameters).get("form", "seconds") for each in treatments(Endpoint.STATUS)}
    assert {"seconds", "http_date", "past_date", "negative", "fraction", "junk", "huge"} <= forms
    stops = {dict(each.parameters).get("for_s") for each in treatments(Endpoint.STORE) if each.kind == "stop"}
    assert stops == {0.5, 3.0, None}


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.endpoint.value)
def test_every_placement_makes_a_scenario_that_can_be_written_and_read_back(place: Place) -> None:
    webhooks = {"webhooks": {"enabled": True}}
    story = Scenario.model_validate({**STORY.model_dump(), "contract": webhooks})
    for treatment in treatments(place.endpoint):
        placed = Placement(place, treatment)
        scenario = Scenario.model_validate(stage(story, (placed,)).model_dump())
        assert scenario.faults == (placed.fault(),)
        assert str(scenario.faults[0].at) == f"{place.endpoint}#2:{treatment.point}"
    plain = tuple(Placement(place, treatment) for treatment in plain_treatments(place.endpoint))
    together = Scenario.model_validate(stage(story, plain).model_dump())
    assert parse(dump(together)) == together


def test_a_killed_worker_is_started_again_a_second_later() -> None:
    kill = next(each for each in treatments(Endpoint.STORE) if each.kind == "kill")
    placed = Placement(Place(order=0, endpoint=Endpoint.STORE, occurrence=1, at=0.5, worker="w1"), kill)
    assert stage(STORY, (placed,)).steps == (*STORY.steps, Start(at=1.5, worker="w1"))
