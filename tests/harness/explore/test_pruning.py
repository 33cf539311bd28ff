"""What needs no run, by what was observed: each reason where it holds, and where it nearly does."""

import pytest

from fake_provider.facts import CommitPoint, Endpoint
from fake_provider.faults import KINDS
from harness.explore.attempts import Attempt, attempt
from harness.explore.placements import Place, Placement, Treatment, plain_treatments, stage
from harness.explore.situations import Precedents, Run
from harness.explore.story import _distinct
from harness.subjects.reference import build
from scenarios.loading import find

STORY = find("happy-path").model_copy(update={"faults": ()})
P = CommitPoint


def treatment(endpoint: Endpoint, kind: str, point: CommitPoint) -> Treatment:
    return next(each for each in plain_treatments(endpoint) if (each.kind, each.point) == (kind, point))


def once(*placements: Placement) -> Attempt:
    return attempt(stage(STORY, placements), build, STORY.seed, tries=True)


ROOT = once()


def first(endpoint: Endpoint) -> Place:
    return next(each for each in ROOT.places if each.endpoint is endpoint)


def struck_by(kind: str, point: CommitPoint, endpoint: Endpoint = Endpoint.CREATE) -> Attempt:
    return once(Placement(first(endpoint), treatment(endpoint, kind, point)))


# -- faults that find nothing to strike


@pytest.mark.parametrize("name", ["happy-path", "duplicate-webhook"])
def test_a_run_says_of_every_fault_whether_it_would_find_something_to_strike(name: str) -> None:
    story = find(name).model_copy(update={"faults": ()})
    root = attempt(story, build, story.seed, tries=True)
    of_each_endpoint = {place.endpoint: place for place in root.places}
    for place in of_each_endpoint.values():
        for each in plain_treatments(place.endpoint):
            made = attempt(stage(story, (Placement(place, each),)), build, story.seed)
            may_be_too_late = made.struck or KINDS[each.kind].takes_effect_later
            assert root.finds(each, place) in {made.struck, may_be_too_late}, (each, place)


def test_a_fault_finds_nothing_behind_another_one_that_ends_the_exchange() -> None:
    create = first(Endpoint.CREATE)
    reset = treatment(Endpoint.CREATE, "connection_reset", P.RECEIVED)
    made = attempt(stage(STORY, (Placement(create, reset),)), build, STORY.seed, tries=True)
    assert made.finds(treatment(Endpoint.CREATE, "kill", P.RECEIVED), create)
    assert not made.finds(treatment(Endpoint.CREATE, "kill", P.COMMITTED), create)
    assert ROOT.finds(treatment(Endpoint.CREATE, "kill", P.COMMITTED), create)


def test_asking_what_could_strike_changes_nothing() -> None:
    asked, left_alone = (attempt(STORY, build, STORY.seed, tries=tries) for tries in (True, False))
    assert asked.reaction == left_alone.reaction
    assert asked.places == left_alone.places


# -- faults that last


def test_a_fault_that_lasts_is_a_run_of_its_own_only_where_a_later_exchange_would_meet_it() -> None:
    earlier, last = (each for each in ROOT.places if each.endpoint is Endpoint.STATUS)
    assert ROOT.passes_again(Endpoint.STATUS, earlier)
    assert not ROOT.passes_again(Endpoint.STATUS, last)


# -- the same reaction


def test_faults_that_a_client_takes_alike_and_that_leave_the_provider_alike_have_one_reaction() -> None:
    assert struck_by("connection_reset", P.RECEIVED).reaction == struck_by("server_error", P.RECEIVED).reaction


def test_the_same_silence_with_a_job_and_without_one_is_not_one_reaction() -> None:
    assert struck_by("request_lost", P.RECEIVED).reaction != struck_by("answer_lost", P.COMMITTED).reaction


def test_a_request_that_is_still_under_way_at_the_end_is_part_of_the_reaction() -> None:
    """The client gives up on both alike; the provider will still serve the one that is slow."""
    slow = struck_by("slow_answer", P.RECEIVED, Endpoint.RESULT)
    lost = struck_by("request_lost", P.RECEIVED, Endpoint.RESULT)
    assert slow.reaction != lost.reaction


def test_a_fault_that_nobody_noticed_is_one_with_the_run_that_lacks_it() -> None:
    unnoticed = struck_by("relative_status_url", P.COMMITTED)
    assert unnoticed.struck
    assert unnoticed.reaction == ROOT.reaction


def test_some_of_the_runs_that_are_not_gone_on_with_are_audited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.explore.situations.MERGED_AUDITED", 1.0)
    create = first(Endpoint.CREATE)
    reset, error = (
        Run((Placement(create, treatment(Endpoint.CREATE, kind, P.RECEIVED)),), struck_by(kind, P.RECEIVED))
        for kind in ("connection_reset", "server_error")
    )
    precedents = Precedents(0, "story", has_webhooks=False)
    precedents.merge(reset, error)
    (audit,) = precedents.due()
    assert audit.precedent[0] == reset.placements[0]
    assert audit.follower[0] == error.placements[0]
    assert audit.precedent[1] == audit.follower[1]
    assert audit.follower[1].place.order > create.order


# -- treatments


ONE, OTHER = (treatment(Endpoint.CREATE, kind, P.RECEIVED) for kind in ("connection_reset", "server_error"))


def test_of_treatments_that_call_forth_the_same_everywhere_one_is_tried() -> None:
    assert list(_distinct({ONE: {0: b"a", 3: b"b"}, OTHER: {0: b"a", 3: b"b"}}, b"root")) == [min(ONE, OTHER, key=rank)]


def test_treatments_that_call_forth_something_else_at_one_place_are_both_tried() -> None:
    assert set(_distinct({ONE: {0: b"a", 3: b"b"}, OTHER: {0: b"a", 3: b"c"}}, b"root")) == {ONE, OTHER}


def test_a_treatment_that_calls_forth_nothing_is_left_out_and_one_that_found_nothing_to_strike_is_kept() -> None:
    assert list(_distinct({ONE: {0: b"root", 3: b"root"}}, b"root")) == []
    assert list(_distinct({ONE: {0: None, 3: None}}, b"root")) == [ONE]


def rank(treated: Treatment) -> int:
    return treated.rank
