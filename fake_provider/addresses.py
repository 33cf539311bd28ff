"""Where a fault is placed: an address names one commit point of one exchange.

Written ``endpoint[filter]#occurrence:point@who``; everything after the endpoint but the point may be left out::

    create  # 1:committed            the first create request of the run
    status  # 3:delivered@op-2       the third status read of operation op-2
    cancel  # 1:received@w1          the first cancel that worker w1 sends
    store[accepted]  # 1:committed   the first durable write that records the local state "accepted"
    result  # *:received             every result read

An occurrence counts from 1 among the exchanges that match the rest of the address, from the start of the run.
"""

import re
from typing import Final, Self

import msgspec

from fake_provider.facts import CommitPoint, Endpoint

__all__ = ["EVERY", "Address", "AddressError"]

EVERY: Final = 0
"""The occurrence that matches each exchange; written ``*``."""

_PATTERN: Final = re.compile(
    r"(?P<endpoint>[a-z_]+)(?:\[(?P<filter>[a-z_]+)\])?(?:#(?P<occurrence>\*|[0-9]+))?:(?P<point>[a-z_]+)"
    r"(?:@(?P<who>[A-Za-z0-9][A-Za-z0-9._-]*))?"
)
_WORKER: Final = re.compile(r"w[0-9]+")


class AddressError(ValueError):
    """Text that is no address. The message says what was found and what is valid."""


class Address(msgspec.Struct, frozen=True):
    """One place in a run where a fault may strike."""

    endpoint: Endpoint
    point: CommitPoint
    occurrence: int = 1  # from 1; EVERY for all
    operation: str | None = None
    worker: str | None = None
    state: str | None = None  # store only: the local state being recorded

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read an address.

        Raises:
            AddressError: if ``text`` is none.
        """
        found = _PATTERN.fullmatch(text)
        if found is None:
            raise AddressError(
                f"{text!r} is no address; write endpoint#occurrence:point, optionally @operation or @worker, "
                "for example create#1:committed or status#2:received@op-1"
            )
        try:
            endpoint = Endpoint(found["endpoint"])
        except ValueError:
            raise AddressError(
                f"{text!r}: {found['endpoint']!r} is no endpoint; one of {', '.join(Endpoint)}"
            ) from None
        try:
            point = CommitPoint(found["point"])
        except ValueError:
            raise AddressError(
                f"{text!r}: {found['point']!r} is no commit point; one of {', '.join(CommitPoint)}"
            ) from None
        if found["filter"] and endpoint is not Endpoint.STORE:
            raise AddressError(f"{text!r}: only a store address may name a local state in brackets")
        if found["occurrence"] == "0":
            raise AddressError(f"{text!r}: occurrences count from 1; write #* for all of them")
        occurrence = EVERY if found["occurrence"] == "*" else int(found["occurrence"] or 1)
        who = found["who"]
        is_worker = who is not None and _WORKER.fullmatch(who) is not None
        return cls(
            endpoint=endpoint,
            point=point,
            occurrence=occurrence,
            operation=None if is_worker else who,
            worker=who if is_worker else None,
            state=found["filter"],
        )

    def __str__(self) -> str:
        state = f"[{self.state}]" if self.state else ""
        occurrence = "*" if self.occurrence == EVERY else self.occurrence
        who = self.operation or self.worker
        return f"{self.endpoint}{state}#{occurrence}:{self.point}" + (f"@{who}" if who else "")
