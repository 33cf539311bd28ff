"""Which faults are armed, which occurrence each exchange is, and which faults have struck."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from typing import Final

import msgspec

from fake_provider.addresses import EVERY, Address
from fake_provider.facts import CommitPoint, Endpoint, FaultsHealed, FaultStruck, Record
from fake_provider.faults.course import Course
from fake_provider.faults.kinds import UNTIL_HEALED, Fault

__all__ = ["MAX_FAULTS", "Begun", "FaultPlan", "Passed", "Strikes"]

MAX_FAULTS: Final = 10_000
"""Faults one run may plan: each is looked at in every exchange with its endpoint."""


class Strikes(msgspec.Struct, frozen=True):
    """The faults that are to strike in one exchange."""

    number: int  # the exchange's, delivery's or write's among all that were counted, from 0
    at: dict[CommitPoint, list[int]]  # as indices into the plan


_Counted = tuple[Endpoint, str | None, str | None, str | None]  # endpoint, operation, worker, state

Begun = Callable[[Endpoint, int, str | None], object]
"""Told of each exchange that is counted: its endpoint, which occurrence it is, and the worker if that is known."""

Passed = Callable[[int, Course], object]
"""Told of each commit point that an exchange passes: the exchange's number, and what has become of it by then."""


class FaultPlan:
    """All faults of a run. Each counts once, however often it strikes."""

    def __init__(
        self, faults: Iterable[Fault], *, record: Record, endpoints: Collection[Endpoint] = tuple(Endpoint)
    ) -> None:
        """Args:
        endpoints: what there is to strike at.
        """
        self._record = record
        self._endpoints = endpoints
        self._faults: list[Fault] = []
        self._armed: dict[Endpoint, list[tuple[int, Fault]]] = {endpoint: [] for endpoint in Endpoint}
        self._struck: set[int] = set()
        self._healed_below = 0  # faults with a lower index are disarmed
        self._seen: defaultdict[_Counted, int] = defaultdict(int)
        self._when_healed: list[Callable[[], object]] = []
        self._when_begun: list[Begun] = []
        self._when_passed: list[Passed] = []
        self._begun = 0
        for fault in faults:
            self.arm(fault)

    def arm(self, fault: Fault) -> int:
        """Plan one more fault; occurrences count from the start of the run all the same. Return its index."""
        if len(self._faults) >= MAX_FAULTS:
            raise ValueError(f"a run plans at most {MAX_FAULTS} faults")
        if fault.at.endpoint not in self._endpoints:
            there_is = ", ".join(each for each in Endpoint if each in self._endpoints)
            raise ValueError(f"{fault.kind} at {fault.at}: there is no {fault.at.endpoint} here; there is {there_is}")
        index = len(self._faults)
        self._faults.append(fault)
        self._armed[fault.at.endpoint].append((index, fault))
        return index

    def heal(self) -> None:
        """Disarm every fault and record that; what faults still hold back is let go."""
        for armed in self._armed.values():
            armed.clear()
        self._healed_below = len(self._faults)
        self._record(FaultsHealed(struck=self.struck, planned=self.planned))
        for callback in self._when_healed:
            callback()

    def when_healed(self, callback: Callable[[], object]) -> None:
        """Call ``callback`` each time the faults are healed."""
        self._when_healed.append(callback)

    def when_begun(self, callback: Begun) -> None:
        """Call ``callback`` for each exchange, delivery and durable write, as it is counted."""
        self._when_begun.append(callback)

    def when_passed(self, callback: Passed) -> None:
        """Call ``callback`` at each commit point, when what is to strike there has struck: one more fault would find
        things as they are then.
        """
        self._when_passed.append(callback)

    def __getitem__(self, index: int) -> Fault:
        return self._faults[index]

    @property
    def planned(self) -> int:
        return len(self._faults)

    @property
    def struck(self) -> int:
        """How many of the planned faults took effect at least once."""
        return len(self._struck)

    def unstruck(self) -> list[tuple[int, Fault]]:
        """Return the faults that never took effect, each with its index."""
        return [(index, fault) for index, fault in enumerate(self._faults) if index not in self._struck]

    def is_armed(self, index: int) -> bool:
        return index >= self._healed_below

    def strike(
        self,
        course: Course,
        strikes: Strikes,
        point: CommitPoint,
        *,
        exchange: int | None,
        worker: str | None,
        operation: str | None,
    ) -> None:
        """Let the faults strike that are to strike at this point, and record those that did."""
        course.point = point
        for index in strikes.at.get(point, ()):
            if not self.is_armed(index):
                continue  # healed while this exchange was under way
            fault = self._faults[index]
            if not fault.can_strike(course):
                continue
            course.fault = index
            fault.strike(course)
            if not fault.takes_effect_later:
                self.has_struck(index, course.endpoint, point, exchange=exchange, worker=worker, operation=operation)
        for callback in self._when_passed:
            callback(strikes.number, course)

    def has_struck(
        self,
        index: int,
        endpoint: Endpoint,
        point: CommitPoint,
        *,
        exchange: int | None,
        worker: str | None,
        operation: str | None,
    ) -> None:
        """Count a fault as struck, and record that it took effect."""
        self._struck.add(index)
        fault = self._faults[index]
        self._record(
            FaultStruck(
                fault=index,
                kind=fault.kind,
                address=str(fault.at),
                endpoint=endpoint,
                point=point,
                exchange=exchange,
                worker=worker,
                operation=operation,
            )
        )

    def begin(
        self, endpoint: Endpoint, *, operation: str | None, worker: str | None, state: str | None = None
    ) -> Strikes | None:
        """Count one more exchange, and return what is to strike in it; None if nothing is, and nobody watches."""
        seen = self._seen
        for known_state in (None,) if state is None else (None, state):
            seen[endpoint, None, None, known_state] += 1
            if operation is not None:
                seen[endpoint, operation, None, known_state] += 1
            if worker is not None:
                seen[endpoint, None, worker, known_state] += 1
        for callback in self._when_begun:
            callback(endpoint, seen[endpoint, None, None, None], worker)
        number, self._begun = self._begun, self._begun + 1
        strikes = Strikes(number, {}) if self._when_passed else None
        for index, fault in self._armed[endpoint]:
            at = fault.at
            if (
                (at.operation is None or at.operation == operation)
                and (at.worker is None or at.worker == worker)
                and (at.state is None or at.state == state)
                and _due(fault, seen[endpoint, at.operation, at.worker, at.state], at)
            ):
                strikes = strikes or Strikes(number, {})
                strikes.at.setdefault(at.point, []).append(index)
        return strikes


def _due(fault: Fault, occurrence: int, at: Address) -> bool:
    if at.occurrence == EVERY:
        return True
    if fault.times == UNTIL_HEALED:
        return occurrence >= at.occurrence
    return at.occurrence <= occurrence < at.occurrence + int(fault.times)
