"""What was visited by many runs of a machine together, and what is asked for of it."""

from collections import Counter
from collections.abc import Collection, Iterator

from fake_provider.facts import FaultStruck, RequestSent
from harness.explore import floors
from harness.explore.leads import edge
from harness.history import Entry, StateRecorded
from harness.verdict import Finding
from scenarios.model import Scenario

__all__ = ["Tally"]


class Tally:
    """What was visited by all runs of a machine together."""

    def __init__(self) -> None:
        self.examples = 0
        self.steps = 0
        self.judged = 0
        self.called = False  # a request was sent
        self.transitions: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.commit_points: Counter[str] = Counter()
        self.contract_values: Counter[str] = Counter()
        self.led: set[str] = set()  # transitions whose leads were played because nothing else had led there
        self.commands: set[str] = set()  # beyond the least, that the client takes
        self.failure: tuple[Scenario, tuple[Finding, ...]] | None = (
            None  # the last one seen: after shrinking, the least
        )

    def observe(self, entry: Entry) -> None:
        """Count one entry of a history."""
        match entry.fact:
            case StateRecorded(before=before, after=after) if before != after:
                self.transitions[edge(before, after)] += 1
            case FaultStruck(kind=kind, point=point):
                self.faults[kind] += 1
                self.commit_points[point.value] += 1
            case RequestSent():
                self.called = True

    def visited(self) -> dict[str, tuple[Collection[str], Collection[str]]]:
        """What was seen, and what is expected to be, where each run draws its own contract."""
        visited: dict[str, tuple[Collection[str], Collection[str]]] = {
            "fault kinds": (self.faults, floors.expected_kinds()),
            "commit points": (self.commit_points, floors.expected_points()),
            "contract values": (self.contract_values, floors.expected_values()),
        }
        if self.transitions:  # else the client does not tell of them; one that was led there may go another way
            visited["transitions"] = ({*self.transitions, *self.led}, floors.expected_transitions(self.commands))
        return visited

    def doubts(self) -> Iterator[str]:
        """Yield why runs without a finding prove nothing, however many there were."""
        if not self.examples:
            yield "no run was made"
        elif not self.called:
            yield "the subject never called the provider"
        if not self.judged:
            yield "no rule had anything to judge"
        if not self.faults:
            yield "no fault struck"
