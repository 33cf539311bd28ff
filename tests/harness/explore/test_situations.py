"""One placement stands for another where the same fault strikes in the same situation, and nowhere else."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import pytest

from fake_provider.facts import CommitPoint, Endpoint
from harness.explore.attempts import Attempt, Situation, aftermath, attempt
from harness.explore.placements import Place, Placement, Treatment, _chances, plain_treatments, stage, treatments
from harness.explore.reactions import Done, Sequel, differ, without_ids
from harness.explore.situations import Precedents, without_its_task
from harness.explore.sweep import sweep
from harness.subject import Outlook, Refused
from harness.subjects import resolve
from harness.subjects.reference import build
from harness.subjects.resolve import Subject
from harness.verdict import Verdict
from scenarios.loading import find
from scenarios.model import Scenario, Submit

STORY = find("happy-path").model_copy(update={"faults": ()})


def treatment(endpoint: Endpoint, kind: str, point: CommitPoint) -> Treatment:
    return next(each for each in plain_treatments(endpoint) if (each.kind, each.point) == (kind, point))


KILL = treatment(Endpoint.RESULT, "kill", CommitPoint.RECEIVED)
LOST = treatment(Endpoint.RESULT, "answer_lost", CommitPoint.COMMITTED)
SKEWED = treatment(Endpoint.RESULT, "clock_skewed", CommitPoint.DELIVERED)  # an hour ahead


def at(treated: Treatment, *, order: int = 0, at_s: float = 0.0) -> tuple[Placement, ...]:
    return (Placement(Place(order, Endpoint.RESULT, 1, at_s, "w1"), treated),)


def once(*placements: Placement) -> Attempt:
    """The run with these faults, and its situations."""
    return attempt(stage(STORY, placements), build, STORY.seed, looks=True)


ROOT = once()


def fault(endpoint: Endpoint, occurrence: int, kind: str, point: CommitPoint) -> Placement:
    place = next(each for each in ROOT.places if (each.endpoint, each.occurrence) == (endpoint, occurrence))
    return Placement(place, treatment(endpoint, kind, point))


def situation(run: Attempt, endpoint: Endpoint, occurrence: int) -> Situation | None:
    place = next(each for each in run.places if (each.endpoint, each.occurrence) == (endpoint, occurrence))
    return run.situation_at(place)


# -- precedents


def here(*ends: float, dues: tuple[float, ...] = ()) -> Situation:
    return Situation(b"here", ends, dues)


def precedent(situation: Situation, treated: Treatment = KILL) -> Precedents:
    """One run was made: its fault struck at 1 s, its client was done at 3 s, and it was over at 6 s."""
    precedents = Precedents(7, "story", has_webhooks=False)
    precedents.add(situation, at(treated, at_s=1.0), quiet_from=3.0, ended=6.0)
    return precedents


def test_the_same_fault_in_the_same_situation_needs_no_run_of_its_own() -> None:
    precedents = precedent(here(5.0))
    assert precedents.follows(here(5.0), at(KILL, order=4))
    assert precedents.followed == 1


def test_another_fault_or_another_situation_does() -> None:
    precedents = precedent(here())
    assert not precedents.follows(here(), at(LOST))
    assert not precedents.follows(Situation(b"there", (), ()), at(KILL))
    assert precedents.followed == 0


@pytest.mark.parametrize(
    ("made", "other", "follows"),
    [
        (here(9.0), here(2.1), True),  # both come when the client is done
        (here(9.0), here(1.9), False),  # the other one comes meanwhile
        (here(9.0), here(2.0), False),  # the other one comes with the last thing that is done
        (here(1.9), here(9.0), False),  # the run saw its own
        (here(1.9), here(1.9), True),  # both see it at the same time
        (here(1.9, 9.0), here(1.9, 1.95), False),
        (here(dues=(9.0,)), here(dues=(5.1,)), True),  # both come when all is over
        (here(dues=(9.0,)), here(dues=(4.9,)), False),  # somebody may be told of it
    ],
)
def test_a_deadline_that_comes_at_another_time_matters_only_while_something_is_done(
    made: Situation, other: Situation, *, follows: bool
) -> None:
    assert precedent(made).follows(other, at(KILL)) is follows


@pytest.mark.parametrize(
    ("made", "other", "follows"),
    [
        (here(3000.0), here(60.0), True),  # the clock jumps over both
        (here(3000.0), here(1.9), False),  # it does, but they may be counted by another clock
        (here(3000.0), here(0.4), False),  # the other one comes before the clock jumps
        (here(3601.9), here(3601.9), True),  # both see it at the same time
        (here(3601.9), here(3601.0), False),  # both see theirs, but not at the same time
        (here(3602.1), here(9000.0), True),  # both come when the client is done
        (here(3602.1), here(3000.0), False),  # the clock jumps over one of them
        (here(dues=(9.0,)), here(dues=(4.9,)), False),  # the provider's clock does not jump
    ],
)
def test_deadlines_that_a_wrong_clock_jumps_over_are_alike(made: Situation, other: Situation, *, follows: bool) -> None:
    """It strikes at 1 s and jumps at 1.5 s, when the answer is there; the client is done at 3 s."""
    precedents = Precedents(7, "story", has_webhooks=False)
    precedents.add(made, at(SKEWED, at_s=1.0), quiet_from=3.0, ended=6.0, clock_jumped=1.5)
    assert precedents.follows(other, at(SKEWED)) is follows


@pytest.mark.parametrize(
    ("has_webhooks", "at_s", "follows"),
    [
        (True, 4.25, True),
        (True, 4.3, False),
        (False, 4.3, True),  # nothing comes by itself while the harness has not looked yet
    ],
)
def test_where_webhooks_come_one_stands_for_another_if_faults_are_healed_as_late(
    at_s: float, *, has_webhooks: bool, follows: bool
) -> None:
    precedents = Precedents(7, "story", has_webhooks=has_webhooks)
    precedents.add(here(), at(KILL, at_s=1.25), quiet_from=3.0, ended=6.0)
    assert precedents.follows(here(), at(KILL, at_s=at_s)) is follows


def test_there_is_no_situation_while_a_fault_is_still_to_strike() -> None:
    """A webhook is taken, with writes of its own, before it is known to be delivered."""
    story = find("duplicate-webhook").model_copy(update={"faults": ()})
    root = attempt(story, build, story.seed, looks=True)
    webhook = next(place for place in root.places if place.endpoint is Endpoint.WEBHOOK)
    replayed = Placement(webhook, treatment(Endpoint.WEBHOOK, "webhook_replayed", CommitPoint.DELIVERED))
    made = attempt(stage(story, (replayed,)), build, story.seed, looks=True)
    taking = [place for place in made.places if place.at == webhook.at and place.order > webhook.order]
    assert root.situation_at(taking[0]) is not None
    assert made.situation_at(taking[0]) is None


def test_the_first_of_what_is_pruned_is_audited_once() -> None:
    precedents = precedent(here())
    precedents.follows(here(), at(KILL, order=4))
    (audit,) = precedents.due()
    assert (audit.number, audit.precedent, audit.follower) == (7, at(KILL, at_s=1.0), at(KILL, order=4))
    assert precedents.due() == []
    assert precedents.audited == 1


# -- situations


def test_a_fault_that_is_overcome_leaves_the_client_in_the_situation_in_which_it_would_have_been() -> None:
    late = once(fault(Endpoint.STORE, 1, "write_refused", CommitPoint.RECEIVED))  # half a second later
    here, there = situation(ROOT, Endpoint.RESULT, 1), situation(late, Endpoint.RESULT, 1)
    assert here is not None
    assert there is not None
    assert here.digest == there.digest


def test_a_client_that_has_failed_before_is_not_in_the_situation_of_one_that_has_not() -> None:
    """The reads are the same; the next back-off is longer."""
    again = once(fault(Endpoint.RESULT, 1, "request_lost", CommitPoint.BEFORE_RECEIPT))
    first, second = situation(ROOT, Endpoint.RESULT, 1), situation(again, Endpoint.RESULT, 2)
    assert first is not None
    assert second is not None
    assert first.digest != second.digest


def test_what_a_worker_is_about_to_write_is_part_of_the_situation() -> None:
    """Before the write both records are the same: what was asked for by a 429 is in the worker's hands only."""
    throttled = once(fault(Endpoint.STATUS, 1, "too_many_requests", CommitPoint.RECEIVED))
    cut_off = once(fault(Endpoint.STATUS, 1, "connection_reset", CommitPoint.BEFORE_RECEIPT))
    one, other = (situation(run, Endpoint.STORE, 6) for run in (throttled, cut_off))
    assert one is not None
    assert other is not None
    assert one.digest != other.digest


def test_the_provider_is_part_of_the_situation() -> None:
    """To the client both are silence; in one of them the job exists."""
    unheard = once(fault(Endpoint.CREATE, 1, "request_lost", CommitPoint.BEFORE_RECEIPT))
    done = once(fault(Endpoint.CREATE, 1, "answer_lost", CommitPoint.COMMITTED))
    one, other = (situation(run, Endpoint.CREATE, 2) for run in (unheard, done))
    assert one is not None
    assert other is not None
    assert one.digest != other.digest


def test_links_that_end_by_themselves_leave_no_situation() -> None:
    signed = Scenario(
        name="signed", summary="Links.", contract={"result": {"kind": "signed_url"}}, work=STORY.work, steps=STORY.steps
    )
    assert set(attempt(signed, build, signed.seed, looks=True).situations) == {None}


def test_a_request_that_is_still_under_way_when_the_run_ends_leaves_no_situation() -> None:
    """The provider will serve it, some time after the client has given it up."""
    slow = once(fault(Endpoint.RESULT, 1, "slow_answer", CommitPoint.RECEIVED))
    assert situation(ROOT, Endpoint.RESULT, 1) is not None
    assert situation(slow, Endpoint.RESULT, 2) is None


def test_a_client_that_is_dead_leaves_no_situation() -> None:
    """What is on its disk, nobody says."""
    story = find("duplicate-webhook").model_copy(update={"faults": ()})
    root = attempt(story, build, story.seed)
    status = next(each for each in root.places if each.endpoint is Endpoint.STATUS)
    killed = Placement(status, treatment(Endpoint.STATUS, "kill", CommitPoint.BEFORE_RECEIPT))
    run = attempt(stage(story, (killed,)), build, story.seed, looks=True)
    assert situation(run, Endpoint.WEBHOOK, 1) is None


def test_two_workers_are_in_one_situation_whenever_they_come_to_it() -> None:
    """A second later, and with another past: which of them wakes up first does not depend on it."""
    story = find("stale-lease").model_copy(update={"faults": ()})
    root = attempt(story, build, story.seed, looks=True)
    create = next(each for each in root.places if each.endpoint is Endpoint.CREATE)
    lost = Placement(create, treatment(Endpoint.CREATE, "request_lost", CommitPoint.RECEIVED))
    late = attempt(stage(story, (lost,)), build, story.seed, looks=True)
    here, there = situation(root, Endpoint.RESULT, 1), situation(late, Endpoint.RESULT, 1)
    assert here is not None
    assert there is not None
    assert here.digest == there.digest


# -- stories


def test_a_wrong_clock_is_followed_by_the_same_whenever_it_is_set_right_again() -> None:
    """In one of the runs the faults are healed in the instant in which it is set wrong."""
    wrong = treatment(Endpoint.STORE, "clock_skewed", CommitPoint.COMMITTED)
    killed = fault(Endpoint.CREATE, 1, "kill", CommitPoint.RECEIVED)
    sequels = []
    for placements in ((), (killed,)):
        run = once(*placements)
        place = next(each for each in run.places if (each.endpoint, each.occurrence) == (Endpoint.STORE, 9))
        staged = stage(STORY, (*placements, Placement(place, wrong)))
        sequels.append(aftermath(staged, build, STORY.seed, place).sequel)
    one, other = sequels
    assert any(b"ClockSet" in each.told for each in one.done)
    assert not differ(one, other)


def test_stories_that_differ_in_what_is_asked_for_are_one() -> None:
    other = find("lost-create-response").model_copy(update={"faults": ()})
    assert other.steps != STORY.steps
    assert without_its_task(other.model_copy(update={"ends": {}, "jobs": {}})) == without_its_task(
        STORY.model_copy(update={"ends": {}, "jobs": {}})
    )
    first, second = sweep(resolve(), [STORY, other], most_runs=5, cores=1).stories
    assert (first.runs_made, second.runs_made) == (5, 0)
    assert second.placements == first.placements == second.same_situation + second.not_made
    assert second.audited == 1


def test_stories_that_differ_in_their_work_are_not() -> None:
    longer = Scenario(name="longer", summary="More of it.", work={"default": {"takes_s": 1.6}}, steps=STORY.steps)
    _, second = sweep(resolve(), [STORY, longer], most_runs=5, cores=1).stories
    assert second.same_situation == 0


def test_a_changed_request_under_a_known_operation_is_no_mere_task() -> None:
    steps = (
        Submit(at=0, operation="op-1", parameters={"month": 1}),
        Submit(at=1, operation="op-1", parameters={"month": 2}),
    )
    story = STORY.model_copy(update={"steps": steps})
    assert without_its_task(story).steps == steps


# -- the audit


BRIEF = Scenario(
    name="brief",
    summary="The job is done when its create is answered.",
    contract={"create_answer": "synchronous", "result": {"kind": "inline"}},
    steps=(Submit(at=0, operation="op-1"),),
)


class Mute:
    """A client that does not say what it will go on from."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def run(self) -> None:
        await self._inner.run()

    async def submit(self, operation: str, request: Any) -> None:
        await self._inner.submit(operation, request)

    async def cancel(self, operation: str, who: str, why: str) -> None:
        await self._inner.cancel(operation, who, why)

    async def report(self) -> Sequence[Any]:
        claims: Sequence[Any] = await self._inner.report()
        return claims


class Failing(Mute):
    """One that cannot say it."""

    def outlook(self) -> Outlook:
        raise RuntimeError("no idea")


class Choosy(Mute):
    """One that says it, but not that it takes a job for account 4711 only once."""

    async def submit(self, operation: str, request: Any) -> None:
        if "account" in request["parameters"] and await self.report():
            raise Refused("not again")
        await super().submit(operation, request)

    def outlook(self) -> Outlook:
        outlook: Outlook = self._inner.outlook()
        return outlook


def made_by(client: type[Mute]) -> Subject:
    return Subject(name="inner", factory=lambda host: client(build(host)))


def few(endpoint: Endpoint) -> tuple[Treatment, ...]:
    """What is done at a place, of a few kinds only."""
    kinds = {"answer_lost", "kill", "write_refused"}
    chosen = (each for each in treatments(endpoint) if each.kind in kinds)
    return tuple(msgspec.structs.replace(each, rank=rank) for rank, each in enumerate(chosen))


@pytest.fixture
def few_kinds(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("harness.explore.story.treatments", few)
    monkeypatch.setattr("harness.explore.placements.treatments", few)
    monkeypatch.setattr(
        "harness.explore.story.plain_treatments",
        lambda endpoint: tuple(each for each in few(endpoint) if each.is_plain),
    )
    _chances.cache_clear()
    yield
    _chances.cache_clear()


@pytest.mark.usefixtures("few_kinds")
def test_what_is_pruned_for_its_situation_is_followed_by_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.explore.situations.AUDITED", 1.0)
    found = sweep(resolve(), [BRIEF], faults=2, cores=1)
    (story,) = found.stories
    assert story.audited == story.same_situation + story.nothing_to_strike
    assert story.same_situation > 50
    assert story.nothing_to_strike > 5
    assert found.verdict is Verdict.PASS, found.reason


@pytest.mark.usefixtures("few_kinds")
def test_a_fault_that_strikes_where_nothing_was_to_be_struck_is_caught_by_the_audit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("harness.explore.attempts.chances", lambda _course: 0)
    found = sweep(resolve(), [BRIEF], cores=1)
    assert found.verdict is Verdict.UNKNOWN
    assert "strikes, though nothing was to be struck" in found.reason


@pytest.mark.usefixtures("few_kinds")
def test_what_is_found_with_pruning_is_what_is_found_without() -> None:
    subject = resolve("tests.broken_clients.new_token_per_retry:build")
    pruned, whole = (sweep(subject, [BRIEF], faults=2, cores=1, prune=prune) for prune in (True, False))
    assert {finding.rule for finding in pruned.findings} == {finding.rule for finding in whole.findings} != set()
    (few,), (all_of_them,) = pruned.stories, whole.stories
    assert few.runs_made < all_of_them.runs_made
    assert (all_of_them.same_reaction, all_of_them.same_situation) == (0, 0)


def test_a_client_that_says_nothing_is_swept_without_regard_to_situations() -> None:
    story = find("happy-path").model_copy(update={"work": STORY.work})
    found = sweep(made_by(Mute), [story, find("lost-create-response")], most_runs=5, cores=1)
    assert [each.same_situation for each in found.stories] == [0, 0]


def test_a_client_that_hides_what_it_goes_by_is_caught_by_the_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.explore.situations.AUDITED", 1.0)
    stories = [find("lost-create-response"), find("happy-path")]
    found = sweep(made_by(Choosy), stories, most_runs=20, cores=1)
    assert found.verdict is Verdict.UNKNOWN
    assert "which stands for it" in found.reason
    assert "--no-prune" in found.reason


def test_an_outlook_that_fails_makes_the_sweep_unknown_and_not_the_client_wrong() -> None:
    found = sweep(made_by(Failing), [BRIEF], most_runs=3, cores=1)
    assert found.verdict is Verdict.UNKNOWN
    assert "no idea" in found.reason


def after(*done: Done, asked: bytes = b"", lasted_s: float = 9.0) -> Sequel:
    return Sequel(done, (asked,), lasted_s)


def test_sequels_differ_by_what_is_done_and_when_but_not_by_the_last_digits_of_a_time() -> None:
    assert not differ(after(Done(1.0, b"a")), after(Done(1.0000004, b"a")))
    assert differ(after(Done(1.0, b"a")), after(Done(1.1, b"a")))
    assert differ(after(Done(1.0, b"a")), after(Done(1.0, b"b")))
    assert not differ(after(Done(1.0, b"a")), after(Done(1.1, b"a", is_chosen=True)))  # when the faults were healed
    assert differ(after(Done(1.0, b"a")), after())
    assert differ(after(asked=b"succeeded"), after(asked=b"failed"))


def test_what_the_provider_does_when_the_other_run_is_over_is_no_difference() -> None:
    late, early = Done(5.0, b"a", by_provider=True), Done(4.9, b"a", by_provider=True)
    assert not differ(after(late, lasted_s=6.0), after(lasted_s=5.0))
    assert differ(after(early, lasted_s=6.0), after(lasted_s=5.0))
    assert differ(after(Done(5.0, b"a"), lasted_s=6.0), after(lasted_s=5.0))  # by the client


def test_ids_are_told_by_the_order_in_which_they_come_up() -> None:
    one, other = "job_" + "a1" * 8, "job_" + "b2" * 8
    assert without_ids([one, f"/v1/jobs/{one}", other]) == without_ids([other, f"/v1/jobs/{other}", one])
    assert without_ids([one, one]) != without_ids([one, other])
    assert without_ids(0.1000000000000001) != without_ids(0.1000000000000002)
