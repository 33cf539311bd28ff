"""Runs scenarios against clients, each in the mode that it asks for.

What runs in real time is imported where it is wanted: it takes sockets, and their libraries half of a start.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Final

from harness.applicability import why_not, why_not_patched, why_not_process
from harness.editions import rules_of
from harness.garbage import full_collections_put_off, heap_set_aside
from harness.interrupts import run_interruptibly
from harness.patching import marks_of
from harness.rules.judge import Judge
from harness.runs import Job, Result
from harness.stage import SubjectError
from harness.subject import Capability
from harness.subjects.resolve import Subject
from harness.verdict import LeftOut
from harness.virtual_time import PatchedSimulation, Simulation, simulated_capabilities
from scenarios.model import Scenario

__all__ = [
    "SEEN_IN_RUNS",
    "CutShort",
    "Job",
    "Result",
    "capabilities_of",
    "run",
    "run_many",
    "simulated_capabilities",
    "sort_out",
]


class CutShort(SubjectError):
    """The subject could not be put under test in one run, and the others were ended. Some runs are made all the same.

    Attributes:
        results: of these, in the order of their jobs.
    """

    def __init__(self, why: SubjectError, results: Sequence[Result]) -> None:
        self.results = list(results)
        super().__init__(str(why))


def run(
    scenario: Scenario,
    subject: Subject,
    *,
    mode: str | None = None,
    seed: int | None = None,
    source: str | None = None,
    edition: int | None = None,
) -> Result:
    """Run one scenario against one subject.

    Args:
        mode: one of ``subject.modes``; the quickest if left out.
        source: how a person names the scenario.
        edition: of the rules; all of them if left out.

    Raises:
        SubjectError: the subject cannot be put under test in this mode.
    """
    mode = mode or subject.modes[0]
    job = Job(scenario=scenario, subject=subject, mode=mode, seed=seed, source=source, edition=edition)
    with full_collections_put_off():
        return _run(job)


SEEN_IN_RUNS: Final[tuple[Capability, ...]] = ("checkpoints", "webhooks")
"""What scenarios need of a client that is seen by what it does: one that lacks it can still be run, in simulation."""


def sort_out(jobs: Sequence[Job], *, by_name: bool = False) -> tuple[list[Job], list[LeftOut]]:
    """Set aside the runs whose scenario does not apply to the client, by what it says it can do.

    A process that speaks the session protocol is started once to be asked.

    Args:
        by_name: the scenarios were asked for by name, as what exploration has found is: whatever can be run is run,
            even if nothing strikes.

    Raises:
        SubjectBroken: it did not answer.
        SubjectError: it cannot be started.
    """
    known: dict[Subject, Collection[Capability]] = {}
    applies, left_out = [], []
    for job in jobs:
        reason = None
        if job.mode == "patched":
            reason = why_not_patched(job.scenario, marks_of(job.subject.patched))
        elif job.mode == "process":
            if job.subject not in known:
                known[job.subject] = capabilities_of(job.subject)
            reason = why_not_process(job.scenario, known[job.subject])
        else:
            if job.subject not in known:
                shown = simulated_capabilities(job.subject)
                known[job.subject] = {*shown, *SEEN_IN_RUNS} if by_name else shown
            reason = why_not(job.scenario, known[job.subject])
        if reason is None:
            applies.append(job)
        else:
            left_out.append(LeftOut(scenario=job.scenario.name, mode=job.mode, reason=reason))
    return applies, left_out


def capabilities_of(subject: Subject) -> Collection[Capability]:
    """What a process subject can do beyond the least.

    Raises:
        SubjectBroken: it did not answer.
        SubjectError: it cannot be started.
    """
    if subject.one_shot or subject.command is None:
        return ()
    from harness.real_time import introduced

    return run_interruptibly(introduced(subject.command))


def run_many(jobs: Sequence[Job], on_done: Callable[[Result], object] = lambda _: None) -> list[Result]:
    """Make runs: those in virtual time one after the other, those in real time side by side.

    Args:
        on_done: shown each result as it comes, in no particular order.

    Returns:
        the results in the order of ``jobs``.

    Raises:
        CutShort: a subject cannot be put under test; the other runs are ended.
    """
    results: dict[int, Result] = {}

    def keep(number: int, result: Result) -> None:
        results[number] = result
        on_done(result)

    real = []
    try:
        with heap_set_aside():
            for number, job in enumerate(jobs):
                if job.mode == "process":
                    real.append((number, job))
                else:
                    keep(number, _run(job))
            if real:
                from harness.real_time import run_side_by_side

                run_interruptibly(run_side_by_side(real, keep))
    except SubjectError as error:
        raise CutShort(error, [results[number] for number in sorted(results)]) from error
    return [results[number] for number in range(len(jobs))]


def _run(job: Job) -> Result:
    if job.mode not in job.subject.modes:
        raise SubjectError(
            f"{job.subject.name!r} cannot be run in mode {job.mode!r}; it can in {', '.join(job.subject.modes)}"
        )
    if job.mode == "process":
        from harness.real_time import run_process

        return run_interruptibly(run_process(job))
    judge = Judge(rules_of(job.edition))
    simulated = job.mode == "simulated"
    factory = job.subject.factory if simulated else job.subject.patched
    assert factory is not None
    kind = Simulation if simulated else PatchedSimulation
    with kind(job.scenario, factory, seed=job.effective_seed, judge=judge) as simulation:
        simulation.follow_story()
        return simulation.conclude(job.reproduce)
