"""Every way in which one more fault can be put into a run: kinds, parameters and times, at the places that it passed.

Pure. A *place* is one exchange, delivery or durable write of a run that was made. A *treatment* is what can be done
there: a kind of fault with its parameters, at a commit point, once or until healed. A *placement* is a treatment at a
place.
"""

from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import Any, Final, Literal, get_args, get_origin

import msgspec
from pydantic.fields import FieldInfo

from fake_provider.addresses import Address
from fake_provider.facts import CommitPoint, Endpoint
from fake_provider.faults import KINDS, UNTIL_HEALED, Course, Fault
from scenarios.model import Scenario, Start, Step

__all__ = ["Place", "Placement", "Treatment", "chances", "plain_treatments", "stage", "treatments"]

RESTART_S: Final = 1.0
"""A killed worker is started again after so long, as a supervisor does. Under its lease, so that both cases occur: its
own lease found again, and another worker's.
"""

_POINTS: Final = tuple(CommitPoint)

_NUMBERS: Final = {
    ("slow_answer", "seconds"): (0.5, 1.5, 5.0),  # within the request time-out; past it; past the lease
    ("webhook_late", "seconds"): (0.5, 5.0),
    ("webhook_replayed", "after_s"): (5.0,),
    ("provider_clock_skewed", "seconds"): (3600.0, -3600.0),
    ("server_error", "retry_after_s"): (None, 2.0),
    ("clock_skewed", "ahead_s"): (3600, -3600),  # past every deadline, to both sides
    ("stop", "for_s"): (0.5, 3.0, None),  # within the lease; past it; until healed
}
"""What to try for a parameter that is a number: one on each side of every limit that a client has. Where a parameter is
not listed, its default is tried.
"""


_PLAIN: Final = {
    "stop": (("for_s", 3.0),),  # past the lease: until healed there would be nobody left to go on
    "webhook_replayed": (("after_s", 5.0),),  # while the run still lasts
}
"""The parameters of a kind where only one choice of them is tried, if those are not its defaults."""


class Place(msgspec.Struct, frozen=True):
    """One exchange, delivery or durable write of a run."""

    order: int  # among all places of the run, from 0
    endpoint: Endpoint
    occurrence: int
    at: float  # seconds since the start
    worker: str | None  # None: a webhook, of which it is not known where it will go


class Treatment(msgspec.Struct, frozen=True):
    """What is done at a place. Treatments of one endpoint are in a fixed order, that of ``rank``."""

    rank: int
    kind: str
    point: CommitPoint
    parameters: tuple[tuple[str, Any], ...]  # those that are not left at their defaults
    until_healed: bool

    @property
    def is_plain(self) -> bool:
        """Whether this is the one way in which its kind is tried where not all ways are."""
        return not self.until_healed and self.parameters == _PLAIN.get(self.kind, ())

    def fault(self, endpoint: Endpoint, occurrence: int) -> Fault:
        """The fault as a scenario holds it, at an occurrence of an endpoint."""
        return KINDS[self.kind](
            kind=self.kind,
            at=Address(endpoint=endpoint, point=self.point, occurrence=occurrence),
            times=UNTIL_HEALED if self.until_healed else 1,
            **dict(self.parameters),
        )


class Placement(msgspec.Struct, frozen=True):
    """One planned fault of a sweep."""

    place: Place
    treatment: Treatment

    @property
    def key(self) -> tuple[int, int]:
        """Orders the placements of a run. Of two faults, the one with the lower key is placed first, so that each pair
        comes once.
        """
        return self.place.order, self.treatment.rank

    def fault(self) -> Fault:
        """The fault as a scenario holds it."""
        return self.treatment.fault(self.place.endpoint, self.place.occurrence)

    def restart(self, workers: tuple[str, ...]) -> Step | None:
        """The step that starts the worker again which this fault kills, if it kills one."""
        if self.treatment.kind != "kill":
            return None
        return Start(at=round(self.place.at + RESTART_S, 3), worker=self.place.worker or workers[0])


def stage(story: Scenario, placements: tuple[Placement, ...]) -> Scenario:
    """Return the story with these faults in it, and the restarts that they call for."""
    restarts = [step for each in placements if (step := each.restart(story.worker_ids)) is not None]
    steps = story.steps if not restarts else tuple(sorted((*story.steps, *restarts), key=lambda step: step.at))
    return story.model_copy(update={"faults": tuple(each.fault() for each in placements), "steps": steps})


@cache
def plain_treatments(endpoint: Endpoint) -> tuple[Treatment, ...]:
    """Of :func:`treatments` those that are plain: each kind at each commit point once."""
    return tuple(each for each in treatments(endpoint) if each.is_plain)


@cache
def treatments(endpoint: Endpoint) -> tuple[Treatment, ...]:
    """Return everything that can be done at a place with this endpoint: by commit point, kind, parameters, times."""
    found = [
        (_POINTS.index(point), number, kind, point, parameters, until_healed)
        for number, (kind, cls) in enumerate(KINDS.items())
        for point in cls.strikes_at.get(endpoint, ())
        for parameters in _variants(cls)
        for until_healed in (False, True)
    ]
    found.sort(key=lambda each: each[:2])
    return tuple(
        Treatment(rank, kind, point, parameters, until_healed)
        for rank, (_, _, kind, point, parameters, until_healed) in enumerate(found)
    )


def chances(course: Course) -> int:
    """Return which treatments would find something to strike, at the commit point that an exchange has come to: for
    each the bit of its rank is set.
    """
    surely, others = _chances(course.endpoint, course.point)
    return surely | sum(bits for fault, bits in others if fault.can_strike(course))


@cache
def _chances(endpoint: Endpoint, point: CommitPoint) -> tuple[int, tuple[tuple[Fault, int], ...]]:
    """The treatments of a commit point that find something always, and the others as faults, each with its bits."""
    surely, others = 0, []
    for each in treatments(endpoint):
        if each.point is not point or each.until_healed:
            continue
        fault, bits = each.fault(endpoint, 1), 3 << each.rank  # once, and beside it the same until healed
        if type(fault).can_strike is Fault.can_strike:
            surely |= bits
        else:
            others.append((fault, bits))
    return surely, tuple(others)


def _variants(cls: type[Fault]) -> Iterator[tuple[tuple[str, Any], ...]]:
    """Every combination of the parameters of a kind."""
    fields = {name: field for name, field in cls.model_fields.items() if name not in {"kind", "at", "times"}}
    for values in product(*(_choices(cls.name(), name, field) for name, field in fields.items())):
        yield tuple(
            (name, value) for (name, field), value in zip(fields.items(), values, strict=True) if value != field.default
        )


def _choices(kind: str, name: str, field: FieldInfo) -> tuple[Any, ...]:
    if get_origin(field.annotation) is Literal:
        return get_args(field.annotation)
    if field.annotation is bool:
        return (False, True)
    return _NUMBERS.get((kind, name), (field.default,))
