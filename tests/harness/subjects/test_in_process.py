"""What a simulated client may say, and which commands it is given."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from fake_provider.facts import FaultsHealed
from harness.history import Claimed, ClockSet, SubjectComplained
from harness.patching import patched
from harness.runner import Job, Result, run, sort_out
from harness.simulation import EPOCH
from harness.stage import SubjectError
from harness.subject import Claim, Client, Factory, Host, Recorded
from harness.subjects import Subject, resolve
from harness.virtual_time import Simulation, simulated_capabilities
from scenarios.model import Heal, Scenario

STORY = Scenario.model_validate(
    {"name": "a-story", "summary": "s", "steps": [{"at": 0, "do": "submit", "operation": "op-1"}], "drain_s": 1}
)

AT_A_WRITE = {"kind": "kill", "at": "store[accepted]#1:committed"}
SAID = (Claimed, FaultsHealed)


class Silent:
    """A client that takes everything and does nothing."""

    said: Any = ()

    async def submit(self, operation: str, request: Mapping[str, Any]) -> None:
        """Take it."""

    async def cancel(self, operation: str, who: str, why: str) -> None:
        """Take it."""

    async def report(self) -> Sequence[Claim]:
        said: Sequence[Claim] = self.said
        return said


def claiming(said: Any) -> Result:
    def build(_host: Host) -> Client:
        client = Silent()
        client.said = said
        return client

    return run(STORY, Subject(name="silent", factory=build))


def facts(result: Result, kind: type) -> list[Any]:
    return [entry.fact for entry in result.history if isinstance(entry.fact, kind)]


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        (Claim(operation="op-1", state=503), "Expected `str`, got `int`"),  # type: ignore[arg-type]
        (Claim(operation="op-1", state="done"), "has the state 'done'; one of accepted"),
        ({"operation": "op-1"}, "no claim"),
    ],
)
def test_a_claim_that_is_none_is_written_down_and_left_out(said: Any, complaint: str) -> None:
    result = claiming([said, Claim(operation="op-1", state="observing")])
    assert {claim.state for claim in facts(result, Claimed)} == {"observing"}
    assert any(complaint in each.message for each in facts(result, SubjectComplained))


class Wavering(Silent):
    """A client that says something else after a second."""

    def __init__(self, host: Host) -> None:
        self.clock, self.began = host.clock, host.clock.now()

    async def report(self) -> Sequence[Claim]:
        state = "succeeded" if self.clock.now() < self.began + 1 else "failed"
        return [Claim(operation="op-1", state=state)]


def test_what_is_claimed_before_the_faults_are_healed_is_written_down_too() -> None:
    told = [entry.fact for entry in run(STORY, Subject(name="wavering", factory=Wavering)).history]
    said = [fact.state if isinstance(fact, Claimed) else "healed" for fact in told if isinstance(fact, SAID)]
    assert said == ["succeeded", "healed", "failed"]


def test_a_claim_that_does_not_change_is_written_down_once() -> None:
    result = claiming([Claim(operation="op-1", state="succeeded")])
    assert [claim.state for claim in facts(result, Claimed)] == ["succeeded"]


def test_a_client_is_asked_for_no_more_than_it_has_methods_for() -> None:
    subject = Subject(name="silent", factory=lambda _host: Silent())
    assert {"decide", "reconcile"}.isdisjoint(simulated_capabilities(subject))
    assert {"decide", "reconcile"} < set(simulated_capabilities(resolve()))


def test_a_story_that_a_simulated_client_cannot_be_told_is_left_out_by_name() -> None:
    subject = Subject(name="silent", factory=lambda _host: Silent())
    told = {
        **STORY.model_dump(),
        "steps": [*STORY.steps, {"at": 1, "do": "decide", "operation": "op-1", "state": "failed"}],
    }
    jobs = [
        Job(scenario=scenario, subject=subject, mode="simulated") for scenario in (STORY, Scenario.model_validate(told))
    ]
    made, left_out = sort_out(jobs)
    assert [job.scenario for job in made] == [STORY]
    assert "what a person decided" in left_out[0].reason


class Noting(Silent):
    """A client that says when it stores something."""

    def __init__(self, host: Host) -> None:
        self.host = host

    async def submit(self, operation: str, request: Mapping[str, Any]) -> None:
        done = Recorded(
            operation=operation,
            before=None,
            after="create_pending",
            entry="transition",
            actor="w1",
            cause="submit",
            reason="asked for",
        )
        await self.host.note(done)

    async def webhook(self, headers: Mapping[str, str], body: bytes) -> int:
        return 204


@pytest.mark.parametrize(("factory", "lacks"), [(Noting, set()), (lambda _host: Silent(), {"checkpoints", "webhooks"})])
def test_what_a_client_does_of_itself_shows_in_a_rehearsal(factory: Factory, lacks: set[str]) -> None:
    shown = set(simulated_capabilities(Subject(name="one", factory=factory)))
    assert {"checkpoints", "webhooks"} - shown == lacks


@pytest.mark.parametrize("told", [{"contract": {"webhooks": {"enabled": True}}}, {"faults": [AT_A_WRITE]}])
def test_a_story_of_what_a_client_does_not_do_is_told_only_if_it_is_asked_for_by_name(told: Mapping[str, Any]) -> None:
    story = Scenario.model_validate({**STORY.model_dump(), **told})
    jobs = [Job(scenario=story, subject=Subject(name="silent", factory=lambda _host: Silent()), mode="simulated")]
    made, (left_out,) = sort_out(jobs)
    assert made == []
    assert "this client does not say" in left_out.reason or "this client takes none" in left_out.reason
    assert sort_out(jobs, by_name=True) == (jobs, [])


def test_each_host_has_a_clock_of_its_own_that_outlives_its_worker_and_the_store_has_the_right_one() -> None:
    hosts: list[Host] = []

    def build(host: Host) -> Client:
        hosts.append(host)
        return Silent()

    steps = [
        {"at": 0, "do": "set_clock", "worker": "w2", "ahead_s": 60},
        {"at": 0, "do": "submit", "operation": "op-1"},
        {"at": 1, "do": "kill", "worker": "w2"},
        {"at": 2, "do": "start", "worker": "w2"},
    ]
    story = Scenario.model_validate({**STORY.model_dump(), "workers": 2, "steps": steps})
    with Simulation(story, build, seed=0) as simulation:
        simulation.start()
        for step in story.steps:
            simulation.advance_to(step.at)
            simulation.apply(step)
        first, second, again = hosts
        true_time = EPOCH + 2
        assert first.clock.now() == first.store_now() == again.store_now() == true_time
        assert second.clock.now() == again.clock.now() == true_time + 60
        simulation.apply(Heal(at=2))
        assert again.clock.now() == true_time
        assert [each.ahead_s for each in facts(simulation.conclude(""), ClockSet)] == [60, 0]


@pytest.mark.parametrize(
    "story",
    [
        {"steps": [*STORY.steps, {"at": 1, "do": "set_clock", "worker": "w1", "ahead_s": 60}]},
        {"faults": [{"kind": "clock_skewed", "at": "create#1:committed"}]},
        {"steps": [*STORY.steps, {"at": 1, "do": "arm", "fault": {"kind": "clock_skewed", "at": "status:received"}}]},
    ],
)
@pytest.mark.parametrize(("mode", "why"), [("process", "the clock of the whole machine"), ("patched", "monotonic")])
def test_a_clock_that_cannot_be_set_is_refused_and_not_left_alone(
    story: Mapping[str, Any], mode: str, why: str
) -> None:
    scenario = Scenario.model_validate({**STORY.model_dump(), **story})
    factory: Any = patched()(lambda _host: Silent())
    subject = Subject(name="any", patched=factory, command=("true",))
    with pytest.raises(SubjectError, match=why):
        run(scenario, subject, mode=mode)
