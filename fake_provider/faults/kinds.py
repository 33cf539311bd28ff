"""What a kind of fault is, where it can strike, and the registry of all kinds."""

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Final, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, PlainValidator, WithJsonSchema, model_validator

from fake_provider.addresses import EVERY, Address
from fake_provider.facts import CommitPoint, Endpoint
from fake_provider.faults.course import Course

__all__ = ["AT_HTTP", "KINDS", "UNTIL_HEALED", "AheadS", "At", "Fault", "Places", "fault_kind", "places"]

UNTIL_HEALED: Final = "until_healed"

Places = Mapping[Endpoint, tuple[CommitPoint, ...]]

AT_HTTP: Final = (
    Endpoint.CREATE,
    Endpoint.STATUS,
    Endpoint.CANCEL,
    Endpoint.RESULT,
    Endpoint.LOOKUP,
    Endpoint.UPLOAD,
    Endpoint.ANNEX,
)
"""The endpoints of a client's requests. Not every dialect has all of them."""


def places(endpoints: Iterable[Endpoint] | Endpoint, *points: CommitPoint) -> Places:
    """Return a table of places: each of the endpoints at each of the points."""
    listed = (endpoints,) if isinstance(endpoints, Endpoint) else tuple(endpoints)
    return MappingProxyType(dict.fromkeys(listed, points))


def _address(value: object) -> Address:
    if isinstance(value, Address):
        return value
    if not isinstance(value, str):
        raise ValueError(f"an address is text such as create#1:committed, not {value!r}")  # noqa: TRY004  pydantic's way
    return Address.parse(value)


At = Annotated[
    Address,
    PlainValidator(_address),
    PlainSerializer(str, return_type=str),
    WithJsonSchema({"type": "string", "examples": ["create#1:committed", "status#2:received@op-1"]}),
]

_MOST_S: Final = 1e9
"""Some thirty years: a clock that is wrong by more, such as one that starts in 1970, makes no further difference."""

AheadS = Annotated[
    float,
    Field(ge=-_MOST_S, le=_MOST_S, description="Seconds it is ahead of true time; negative: behind; 0: set right."),
]


class Fault(BaseModel):
    """One planned fault: what, where, and how many times in a row."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    strikes_at: ClassVar[Places]
    takes_effect_later: ClassVar[bool] = False  # who brings it about says that it has struck

    kind: str
    at: At = Field(description="endpoint#occurrence:point, optionally @operation or @worker.")
    times: Annotated[int, Field(ge=1)] | Literal["until_healed"] = Field(
        1, description="How many occurrences in a row from the addressed one, or until_healed."
    )

    @model_validator(mode="after")
    def _can_strike_there(self) -> Self:
        points = self.strikes_at.get(self.at.endpoint, ())
        if self.at.point not in points:
            raise ValueError(
                f"{self.kind} cannot strike at {self.at.endpoint}:{self.at.point}; it can at {self.where()}"
            )
        if self.at.endpoint is Endpoint.WEBHOOK and self.at.worker is not None:
            raise ValueError(f"{self.at}: which worker a webhook reaches is not known before; name an operation")
        if self.at.occurrence == EVERY and isinstance(self.times, int) and self.times != 1:
            raise ValueError(f"{self.at} strikes every time already: leave times out, or write a first occurrence")
        return self

    @classmethod
    def where(cls) -> str:
        """Name every place where this kind can strike."""
        return ", ".join(f"{endpoint}:{point}" for endpoint, points in cls.strikes_at.items() for point in points)

    @classmethod
    def name(cls) -> str:
        """Return the kind's name, as it is written in a scenario."""
        return str(cls.model_fields["kind"].default)

    @classmethod
    def summary(cls) -> str:
        """Return the kind's one line of documentation."""
        return (cls.__doc__ or "").strip().splitlines()[0]

    def can_strike(self, course: Course) -> bool:  # noqa: ARG002  most kinds find something everywhere
        """Whether there is something to strike at. Changes nothing."""
        return True

    @abstractmethod
    def strike(self, course: Course) -> None:
        """Say what shall become of the exchange. Asked where there is something to strike at."""


_kinds: dict[str, type[Fault]] = {}

KINDS: Final[Mapping[str, type[Fault]]] = MappingProxyType(_kinds)
"""All kinds by name, in the order in which they are defined."""

_Kind = TypeVar("_Kind", bound=Fault)


def fault_kind(cls: type[_Kind]) -> type[_Kind]:
    """Register a kind of fault.

    Raises:
        TypeError: if it is not shaped as a kind must be, or its name is taken.
    """
    name: Any = cls.model_fields["kind"].default
    if not isinstance(name, str):
        raise TypeError(f"{cls.__name__}: a fault kind declares kind: Literal[name] = name")
    if name in _kinds:
        raise TypeError(f"{cls.__name__}: the kind {name!r} is {_kinds[name].__name__}'s already")
    if not cls.__dict__.get("__doc__"):
        raise TypeError(f"{cls.__name__}: a fault kind says in its docstring what it does")
    if not getattr(cls, "strikes_at", None):
        raise TypeError(f"{cls.__name__}: a fault kind says in strikes_at where it can strike")
    _kinds[name] = cls
    return cls
