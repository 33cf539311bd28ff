"""What the machine draws from: contracts, what jobs do, and faults at addresses. Small numbers first, so that
failures shrink to them.
"""

from typing import Annotated, Any, Final, Literal, TypeVar, get_args, get_origin

import hypothesis.strategies as st
from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from fake_provider.addresses import Address
from fake_provider.contract import (
    Cancel,
    CancelEffect,
    CancelMethod,
    Contract,
    CreateAnswer,
    FinishedCancel,
    Idempotency,
    InFlight,
    Lookup,
    LookupBy,
    Mechanism,
    OtherBody,
    Replays,
    Result,
    ResultKind,
    RetryAfter,
    StateWords,
    Status,
    Webhooks,
)
from fake_provider.facts import Endpoint
from fake_provider.faults import KINDS, UNTIL_HEALED, AnyFault
from fake_provider.faults.kinds import Fault
from fake_provider.presets import PRESETS
from fake_provider.work import Work
from harness.subject import STATES

__all__ = ["contracts", "faults", "works"]

T = TypeVar("T")

MAX_OCCURRENCE: Final = 4
"""A client in good order makes few requests of a kind in one run; a later occurrence would seldom be reached."""

_SECONDS: Final = (0.5, 1.5, 3.0, 6.0, 600.0, 100_000.0)
"""Under and over the request time-out, the lease, a signature's tolerance, and a token's lifetime."""

_ENDPOINTS: Final = (
    Endpoint.CREATE,
    Endpoint.CREATE,
    Endpoint.STATUS,
    Endpoint.STATUS,
    Endpoint.CANCEL,
    Endpoint.RESULT,
    Endpoint.WEBHOOK,
    Endpoint.STORE,
    Endpoint.LOOKUP,
)
"""Where a fault is placed, as often as it stands here: each run creates and reads, few look anything up."""

_NUMBERS: Final = {"seconds": _SECONDS, "for_s": (0.5, 3.0, 8.0), "ahead_s": (3600.0, -3600.0, 2.0, -2.0)}
"""What to try for a parameter, by its name, in whichever kind it stands; the kind's own limits leave some of it."""


def _mostly(usual: T, *others: T) -> st.SearchStrategy[T]:
    """The usual thing three times out of four."""
    return st.sampled_from((*[usual] * (3 * len(others)), *others))


_STATES: Final = tuple(sorted(STATES))

_VOCABULARIES: Final = [each.status.words for each in PRESETS.values() if each.status.words != StateWords()]


_PROMISES: Final = st.fixed_dictionaries(
    {
        "create_answer": st.sampled_from(CreateAnswer),
        "idempotency": st.builds(
            Idempotency,
            mechanism=_mostly(*Mechanism),
            required=_mostly(True, False),
            key_lifetime_s=_mostly(86_400.0, 5.0),
            other_body=st.sampled_from(OtherBody),
            in_flight=st.sampled_from(InFlight),
            replays=st.sampled_from(Replays),
            replays_marked=_mostly(True, False),
        ),
        "lookup": st.one_of(
            st.builds(Lookup, by=st.sampled_from(LookupBy), authoritative=st.booleans()),
            st.builds(Lookup, by=st.just(LookupBy.CLIENT_REFERENCE), authoritative=st.just(False), lag_s=st.just(2.0)),
        ),
        "cancel": st.builds(
            Cancel,
            method=st.sampled_from(CancelMethod),
            effect=st.sampled_from(CancelEffect),
            finished=st.sampled_from(FinishedCancel),
            repeatable=st.booleans(),
        ),
        "status": st.builds(
            Status,
            retry_after=st.sampled_from(RetryAfter),
            retry_after_s=st.integers(0, 3),
            progress=_mostly(True, False),
            words=_mostly(StateWords(), *_VOCABULARIES),
        ),
        "result": st.builds(
            Result,
            kind=st.sampled_from(ResultKind),
            checksum=_mostly(True, False),
            size=_mostly(True, False),
            record_count=_mostly(True, False),
            partial=st.booleans(),
        ),
        "webhooks": st.builds(Webhooks, enabled=st.booleans(), progress_events=st.booleans()),
        "time_limit_s": _mostly(None, 3.0),
    }
)


@st.composite
def contracts(draw: st.DrawFn) -> Contract:
    """Draw a provider: any promises that do not contradict each other, in half of the runs the plain ones."""
    if draw(st.booleans()):
        return Contract()
    promises = draw(_PROMISES)
    if promises["create_answer"] is CreateAnswer.SYNCHRONOUS:
        promises["webhooks"] = Webhooks()  # there is nothing to tell of
        promises["time_limit_s"] = None  # nor anything to limit
    if promises["idempotency"].mechanism is Mechanism.NONE and promises["lookup"].by is LookupBy.RECENT_BY_REQUEST_ID:
        promises["lookup"] = Lookup()  # there is no request id to look for
    return Contract(**promises)


def works() -> st.SearchStrategy[Work]:
    """Draw what a job does."""
    return st.one_of(
        st.builds(Work, takes_s=st.sampled_from((2.0, 0.0, 0.5, 5.0, 25.0)), records=st.integers(0, 3)),
        st.builds(Work, takes_s=st.sampled_from((2.0, 0.5)), outcome=st.just("failed")),
        st.builds(Work, takes_s=st.sampled_from((2.0, 0.5)), outcome=st.just("cancelled")),
        st.builds(Work, takes_s=st.just(2.0), records=st.just(3), failed_items=st.integers(1, 3)),
    )


def faults(*, operations: int, workers: int) -> st.SearchStrategy[AnyFault]:
    """Draw a fault: of any kind at an endpoint, most where every run comes by most; or of a kind, wherever it can
    strike.
    """
    who = [None, None, None, *(f"op-{number}" for number in range(1, operations + 1))]
    hosts = [f"w{number}" for number in range(1, workers + 1)]
    by_endpoint = [
        [_of_kind(kind, endpoint, who, hosts) for kind in KINDS.values() if endpoint in kind.strikes_at]
        for endpoint in _ENDPOINTS
    ]
    by_kind = [
        [
            _of_kind(kind, endpoint, who, hosts)
            for endpoint in Endpoint
            if endpoint in kind.strikes_at and endpoint in _ENDPOINTS
        ]
        for kind in KINDS.values()
    ]
    # Places that every run comes by as often as kinds that have one place only.
    return st.one_of(st.one_of(*map(st.one_of, by_endpoint)), st.one_of(*map(st.one_of, by_kind)))


def _of_kind(
    kind: type[Fault], endpoint: Endpoint, operations: list[str | None], workers: list[str]
) -> st.SearchStrategy[AnyFault]:
    parameters = st.fixed_dictionaries(
        {
            name: st.sampled_from(choices)
            for name, field in sorted(kind.model_fields.items())
            if name != "kind" and (choices := _choices(name, field))
        }
    )

    @st.composite
    def one(draw: st.DrawFn) -> AnyFault:
        point = draw(st.sampled_from(kind.strikes_at[endpoint]))
        # Early occurrences of anyone's exchange are listed first and most: a fault that is never reached tells nothing.
        occurrence = draw(st.sampled_from((1, 1, 1, 2, 2, 3, MAX_OCCURRENCE)))
        times = draw(st.sampled_from((1, 1, 1, 2, UNTIL_HEALED)))
        by_worker = endpoint is not Endpoint.WEBHOOK and draw(st.integers(0, 3)) == 3
        at = Address(
            endpoint=endpoint,
            point=point,
            occurrence=occurrence,
            worker=draw(st.sampled_from(workers)) if by_worker else None,
            operation=None if by_worker else draw(st.sampled_from(operations)),
            state=draw(st.sampled_from((None, *_STATES))) if endpoint is Endpoint.STORE else None,
        )
        return kind(at=at, times=times, **draw(parameters))

    return one()


def _choices(name: str, field: FieldInfo) -> tuple[Any, ...]:
    """What a parameter may be drawn from; nothing for one that is best left at its default."""
    if get_origin(field.annotation) is Literal:
        return get_args(field.annotation)
    limits: TypeAdapter[Any] = TypeAdapter(Annotated[field.annotation, field])  # type: ignore[arg-type]  # a type made at run time
    return tuple(number for number in _NUMBERS.get(name, ()) if _is_valid(limits, number))


def _is_valid(limits: TypeAdapter[Any], value: object) -> bool:
    try:
        limits.validate_python(value)
    except ValidationError:
        return False
    return True
