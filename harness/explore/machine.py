"""Random exploration: a Hypothesis state machine that drives one simulated run and judges it as it goes.

What the machine does becomes a scenario as it does it, so that a failure is a scenario file like any other, and is
shrunk as one. ``machine_for`` makes the machine for anyone's own suite; ``harness.explore.exploration`` runs it many
times.
"""

import re
from collections.abc import Collection
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, Final, get_args
from unittest import TestCase

import hypothesis.strategies as st
from hypothesis import event
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from fake_provider.contract import Contract, CreateAnswer
from fake_provider.facts import FaultStruck
from fake_provider.faults import AnyFault
from fake_provider.work import DEFAULT, Work
from harness.explore import floors
from harness.explore.leads import Lead, edge, leads, stories
from harness.explore.strategies import contracts, faults, works
from harness.explore.suite import RuleBroken, case_of
from harness.explore.tally import Tally
from harness.history import Entry, StateRecorded
from harness.known_failing import rules_besides
from harness.rules.judge import Judge
from harness.stage import Stage, SubjectError
from harness.subject import Factory
from harness.subjects.resolve import REFERENCE, Subject, subject_of
from harness.verdict import Finding
from harness.virtual_time import Simulation
from scenarios.loading import find_contract
from scenarios.model import (
    Arm,
    Cancel,
    Complete,
    Decide,
    DecidedState,
    Fail,
    Kill,
    Reconcile,
    Resume,
    Scenario,
    Start,
    Step,
    Stop,
    Submit,
    Timing,
    Wait,
)

__all__ = ["Machine", "machine_for"]

MAX_OPERATIONS: Final = 3
"""Enough for one operation to disturb another; more only make failures harder to read."""

WORKERS: Final = 2
"""Enough for every race about a lease."""

AFTERMATH_S: Final = 8.0
"""How long a run goes on that had a stop command: under most terms longer than a client may wait to act on it."""

PLAYED_OUT_S: Final = 3.0
"""How long a beginning is left alone after its last step, so that what it is for comes about."""

STORIES: Final = st.deferred(lambda: st.sampled_from(stories()))  # read when they are wanted

FAULTS: Final = faults(operations=MAX_OPERATIONS, workers=WORKERS)

_NAME: Final = "found-by-exploration"


@cache
def _broken(rule_id: str) -> type[RuleBroken]:
    """One class for each rule: Hypothesis takes errors of one class for one failure, and shrinks within it."""
    return type(f"RuleBroken[{rule_id}]", (RuleBroken,), {})


class _Case:
    """``TestCase``, which Hypothesis offers on each machine."""

    def __get__(self, _instance: object, machine: Any) -> type[TestCase]:
        return case_of(machine)


class Machine(RuleBasedStateMachine):
    """One simulated run. Made concrete by :func:`machine_for`."""

    subject: ClassVar[Subject]
    contract: ClassVar[Contract | None] = None  # None: drawn for each run
    run_seed: ClassVar[int] = 0
    known: ClassVar[frozenset[str]] = frozenset()  # rules that are known to be broken, and not judged
    lead: ClassVar[Lead | None] = None  # what every run begins with; None: drawn, or nothing
    tally: ClassVar[Tally]
    save: ClassVar[Path | None] = None  # where the shrunk run goes that fails in a suite
    wanders: ClassVar[bool] = True  # each run draws its contract and its beginning
    in_suite: ClassVar[bool] = False  # somebody may ask Hypothesis for statistics; they cost a twentieth of the time
    TestCase = _Case()  # type: ignore[assignment]  # a descriptor there, too

    def __init__(self) -> None:
        super().__init__()
        self.simulation: Simulation | None = None
        self.steps: list[Step] = []
        self.states: dict[str, str] = {}  # the local states of operations, where the client notes them
        self.people = False  # whether anyone looks after operations at rest
        self.visited: set[str] = set()  # in this run, as Hypothesis's statistics are to tell it
        self.over = False

    # -- the beginning

    @initialize(
        contract=contracts(),
        work=st.tuples(*[works()] * MAX_OPERATIONS),
        armed=st.lists(FAULTS, min_size=2, max_size=6),
        lead=st.one_of(st.none(), st.none(), st.none(), st.sampled_from(leads()), STORIES),
        people=st.sampled_from((False, False, True)),
    )
    def begin(
        self, contract: Contract, work: tuple[Work, ...], armed: list[AnyFault], lead: Lead | None, people: bool
    ) -> None:
        lead = self.lead or lead
        opening = lead.opening if lead is not None and self.contract is None else None
        self.people = people
        promised = self.contract or (opening.contract if opening is not None else contract)
        self.scenario = Scenario(
            name=_NAME,
            summary="Found by random exploration, and shrunk.",
            contract=promised,
            timing=opening.timing if opening is not None else Timing(),
            workers=WORKERS,
            work=self._works(work, opening, promised),
            steps=tuple(Submit(at=0, operation=f"op-{number}") for number in range(1, MAX_OPERATIONS + 1)),
            modes=("simulated",),
            seed=self.run_seed,
        )
        self.submitted: list[str] = []
        factory = self.subject.factory
        assert factory is not None, "machine_for() takes no other subjects"
        judge = Judge(rules_besides(self.known))
        self.simulation = Simulation(self.scenario, factory, seed=self.run_seed, judge=judge)
        self.simulation.history.observe(self.tally.observe)
        self.simulation.history.observe(self._follow)
        self.simulation.start()
        self.tally.commands.update(self.simulation.commands)
        promises = list(floors.values_of(self.scenario.contract))
        self.tally.contract_values.update(promises)
        self.visited.update(f"promise {each}" for each in promises)
        if opening is not None:
            self._play(opening)
            return
        for fault in armed:
            self.arm(fault)
        self.submit()

    @staticmethod
    def _works(drawn: tuple[Work, ...], opening: Scenario | None, promised: Contract) -> dict[str, Work]:
        works = {f"op-{number}": each for number, each in enumerate(drawn, start=1)}
        if opening is not None:
            usual = opening.work.get(DEFAULT, Work())
            return {name: opening.work.get(name, usual) for name in works}
        if promised.create_answer is CreateAnswer.SYNCHRONOUS:  # nobody can cancel what is over at once
            return {name: Work() if each.outcome == "cancelled" else each for name, each in works.items()}
        return works

    def _play(self, opening: Scenario) -> None:
        """Begin as a lead does, as far as this client can be led so."""
        assert self.simulation is not None
        for fault in opening.faults:
            self.arm(fault)
        for step in opening.steps:
            if step.at > self._now:
                self._advance(step.at - self._now)
            if isinstance(step, Submit) and step.operation not in self.submitted:
                self.submitted.append(step.operation)
            can = step.do not in {"decide", "reconcile"} or step.do in self.simulation.commands
            if can and not isinstance(step, Wait) and self._has_object(step):
                self._apply(step.model_copy(update={"at": self._now}))
        self._advance(PLAYED_OUT_S)

    def _has_object(self, step: Step) -> bool:
        """Whether a step has what it is done to: a worker in the right state, or a job that has not ended."""
        if isinstance(step, Start):
            return not self._stage.is_living(step.worker)
        if isinstance(step, Kill | Stop | Resume):
            return self._stage.is_living(step.worker)
        return not isinstance(step, Complete | Fail) or step.operation in self._unfinished

    def _follow(self, entry: Entry) -> None:
        """Keep in mind which operations wait for a person, and where this run has been."""
        match entry.fact:
            case StateRecorded(operation=operation, before=before, after=after):
                self.states[operation] = after
                if before != after:
                    self.visited.add(f"transition {edge(before, after)}")
            case FaultStruck(kind=kind, point=point):
                self.visited |= {f"fault {kind}", f"commit point {point}"}

    # -- what people and programs do

    @rule()
    @precondition(lambda self: len(self.submitted) < MAX_OPERATIONS and self._has_living)
    def submit(self) -> None:
        operation = f"op-{len(self.submitted) + 1}"
        self.submitted.append(operation)
        self._apply(Submit(at=self._now, operation=operation))

    @rule(which=st.integers(0, MAX_OPERATIONS - 1))
    @precondition(lambda self: self.submitted and self._has_living)
    def repeat_submit(self, which: int) -> None:
        self._apply(Submit(at=self._now, operation=self._pick(which)))

    @rule(which=st.integers(0, MAX_OPERATIONS - 1))
    @precondition(lambda self: self.submitted and self._has_living)
    def changed_submit(self, which: int) -> None:
        self._apply(Submit(at=self._now, operation=self._pick(which), parameters={"changed": True}))

    @rule(which=st.integers(0, MAX_OPERATIONS - 1))
    @precondition(lambda self: self.submitted and self._has_living)
    def cancel(self, which: int) -> None:
        self._apply(Cancel(at=self._now, operation=self._pick(which)))

    @rule(which=st.integers(0, MAX_OPERATIONS - 1))
    @precondition(lambda self: self.people and self.submitted and self._has_living and self._takes("reconcile"))
    def reconcile(self, which: int) -> None:
        self._apply(Reconcile(at=self._now, operation=self._pick(which)))

    @rule(which=st.integers(0, MAX_OPERATIONS - 1), state=st.sampled_from(get_args(DecidedState)))
    @precondition(lambda self: self.people and self._waiting and self._has_living and self._takes("decide"))
    def decide(self, which: int, state: DecidedState) -> None:
        waiting = self._waiting
        self._apply(Decide(at=self._now, operation=waiting[which % len(waiting)], state=state))

    # -- what time and the provider do

    @rule(tenths=st.integers(1, 10))
    def let_a_moment_pass(self, tenths: int) -> None:
        self._advance(tenths / 10)

    @rule(seconds=st.integers(1, 30))
    def let_time_pass(self, seconds: int) -> None:
        self._advance(seconds)

    @rule(which=st.integers(0, MAX_OPERATIONS - 1))
    @precondition(lambda self: self._unfinished)
    def complete_job(self, which: int) -> None:
        unfinished = self._unfinished
        self._apply(Complete(at=self._now, operation=unfinished[which % len(unfinished)]))

    @rule(which=st.integers(0, MAX_OPERATIONS - 1))
    @precondition(lambda self: self._unfinished)
    def fail_job(self, which: int) -> None:
        unfinished = self._unfinished
        self._apply(Fail(at=self._now, operation=unfinished[which % len(unfinished)]))

    @rule(fault=FAULTS)
    def arm(self, fault: AnyFault) -> None:
        if self.scenario.can_mean(fault):
            self._apply(Arm(at=self._now, fault=fault))

    # -- what happens to hosts

    @rule(worker=st.integers(1, WORKERS))
    @precondition(lambda self: self._has_living)
    def kill(self, worker: int) -> None:
        if self._stage.is_living(f"w{worker}"):
            self._apply(Kill(at=self._now, worker=f"w{worker}"))

    @rule()
    @precondition(lambda self: self._dead)
    def start(self) -> None:
        self._apply(Start(at=self._now, worker=self._dead[0]))

    @rule(worker=st.integers(1, WORKERS))
    @precondition(lambda self: self._has_running)
    def stop(self, worker: int) -> None:
        if self._stage.is_running(f"w{worker}"):
            self._apply(Stop(at=self._now, worker=f"w{worker}"))

    @rule()
    @precondition(lambda self: self._stopped)
    def resume(self) -> None:
        self._apply(Resume(at=self._now, worker=self._stopped[0]))

    @rule(worker=st.integers(1, WORKERS))
    @precondition(lambda self: self._has_running)
    def let_a_lease_run_out(self, worker: int) -> None:
        if self._stage.is_running(f"w{worker}"):
            self._apply(Stop(at=self._now, worker=f"w{worker}"))
            self._advance(1.5 * self.scenario.timing.lease_s)
            self._apply(Resume(at=self._now, worker=f"w{worker}"))

    # -- the end

    def teardown(self) -> None:
        """Heal, drain to rest, and judge what only the end can show."""
        if self.simulation is None:
            return
        self.tally.examples += 1
        if self.in_suite:
            for each in sorted(self.visited):
                event(each)
        with self.simulation as simulation:
            if self.over:
                return
            if any(isinstance(step, Cancel) for step in self.steps):
                self._advance(AFTERMATH_S)
            simulation.finish()
            outcome = simulation.conclude(REFERENCE).outcome
            self.tally.judged += outcome.rules_judged
            self._check(outcome.findings)

    # -- inside

    def _apply(self, step: Step) -> None:
        assert self.simulation is not None
        self.tally.steps += 1
        self.steps.append(step)
        self.simulation.apply(step)
        self._check(self.simulation.judge.findings)

    def _advance(self, seconds: float) -> None:
        assert self.simulation is not None
        self.tally.steps += 1
        until = round(self._now + seconds, 3)
        self.steps.append(Wait(at=until))
        self.simulation.advance_to(until)
        self._check(self.simulation.judge.findings)

    def _check(self, findings: tuple[Finding, ...]) -> None:
        if not findings:
            return
        self.over = True
        scenario = self._as_scenario()
        self.tally.failure = (scenario, findings)
        raise _broken(findings[0].rule)(findings, scenario)

    def _as_scenario(self) -> Scenario:
        story = {
            **self.scenario.model_dump(),
            "steps": [step.model_dump() for step in self.steps if self._can_matter(step)],
            "work": {key: self.scenario.work[key].model_dump() for key in self.submitted},
        }
        return Scenario.model_validate(story)

    def _can_matter(self, step: Step) -> bool:
        """Whether a step says something in a scenario: a fault for an operation that was never submitted does not."""
        return not isinstance(step, Arm) or step.fault.at.operation in {None, *self.submitted}

    def _pick(self, which: int) -> str:
        return self.submitted[which % len(self.submitted)]

    def _takes(self, command: str) -> bool:
        return self.simulation is not None and command in self.simulation.commands

    @property
    def _waiting(self) -> list[str]:
        """Operations that wait for a person's decision."""
        return [each for each in self.submitted if self.states.get(each) == "human_decision_required"]

    @property
    def _now(self) -> float:
        assert self.simulation is not None
        return self.simulation.now

    @property
    def _stage(self) -> Stage:
        assert self.simulation is not None
        return self.simulation.course.stage

    @property
    def _has_living(self) -> bool:
        return any(self._stage.is_living(worker) for worker in self.scenario.worker_ids)

    @property
    def _has_running(self) -> bool:
        return any(self._stage.is_running(worker) for worker in self.scenario.worker_ids)

    @property
    def _dead(self) -> list[str]:
        return [worker for worker in self.scenario.worker_ids if not self._stage.is_living(worker)]

    @property
    def _stopped(self) -> list[str]:
        stage = self._stage
        return [each for each in self.scenario.worker_ids if stage.is_living(each) and not stage.is_running(each)]

    @property
    def _unfinished(self) -> list[str]:
        assert self.simulation is not None
        return self.simulation.unfinished_operations()


def machine_for(
    subject: Factory | str | Subject,
    contract: Contract | str | None = None,
    *,
    tally: Tally | None = None,
    run_seed: int = 0,
    lead: Lead | None = None,
    known: Collection[str] = (),
    save: Path | str | None = None,
) -> type[Machine]:
    """Return a state machine class for a simulated client; its ``TestCase`` goes into any test suite.

    Args:
        subject: the client: its factory, or ``package.module:factory``, as for ``jobsworth check``.
        contract: what the provider promises, or the name of a preset or a file; drawn anew for each run if left out.
        tally: counts what is visited.
        run_seed: what the randomness inside each run starts from.
        lead: what every run begins with; now one and now another, and mostly none, if left out.
        known: rules that are known to be broken: they are not judged, so that others come to light.
        save: in a suite, the folder for the scenario of a failure; it is part of the failure's message if left out.

    Raises:
        SubjectError: the subject cannot be found, or not be simulated.
        ScenarioError: there is no such contract.
        BadList: there is no such rule.
        TypeError: what is given for the contract is none.
    """
    under_test = subject if isinstance(subject, Subject) else subject_of(subject)
    if under_test.factory is None:
        raise SubjectError(
            f"{under_test.name!r} cannot be explored: exploration needs a client that can be simulated, "
            f"and this one is run {' or '.join(under_test.modes)}"
        )
    promised = find_contract(contract) if isinstance(contract, str) else contract
    if promised is not None and not isinstance(promised, Contract):
        raise TypeError(f"{promised!r} is no contract: a fake_provider.contract.Contract, or the name of a preset")
    rules_besides(frozenset(known))
    attributes = {
        "known": frozenset(known),
        "subject": under_test,
        "contract": promised,
        "tally": tally or Tally(),
        "run_seed": run_seed,
        "lead": lead,
        "save": Path(save) if save is not None else None,
        "wanders": promised is None and lead is None,
        "__module__": f"{__name__}:made",  # it has no source: Hypothesis would read this file through to look for it
        "__doc__": f"Exploration of {under_test.name}.",
    }
    return type(_name(under_test, promised), (Machine,), attributes)


def _name(subject: Subject, contract: Contract | None) -> str:
    """A name of its own for each machine: Hypothesis keeps failing examples by it, and drops what does not fail."""
    name = f"Exploration_of_{subject.name}"
    if contract is not None:
        name += f"_under_{contract.name}_{sha256(contract.model_dump_json().encode()).hexdigest()[:8]}"
    return re.sub(r"\W+", "_", name)
