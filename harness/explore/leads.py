"""Leads: beginnings that lead to places which random commands and faults seldom come by.

A lead is the beginning of a run, as data; the machine plays it and goes on at random from there. Each says which
transitions of W5 it is for. Where a place was not visited by chance, exploration goes for it with its leads.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final, get_args

import msgspec

from harness.rules.local_states import EDGES, FINAL
from scenarios.loading import load_catalogue
from scenarios.model import Arm, DecidedState, Scenario

__all__ = ["EDGE_NAMES", "Lead", "edge", "leads", "leads_to_kind", "stories"]

_WAITING: Final = "human_decision_required"


def edge(before: str | None, after: str) -> str:
    """How a transition is written in reports."""
    return f"{before or 'new'} -> {after}"


EDGE_NAMES: Final = frozenset(
    {edge(before, after) for before, afters in EDGES.items() for after in afters}
    | {edge(state, _WAITING) for state in EDGES if state not in FINAL and state != _WAITING}
    | {edge(_WAITING, state) for state in EDGES if state != _WAITING}
)
"""Every transition that the table of W5 allows, the two rows with "any" in them written out."""


class Lead(msgspec.Struct, frozen=True):
    """The beginning of a run, and the transitions it is for."""

    edges: tuple[str, ...]
    opening: Scenario


_SUBMIT: Final = {"at": 0, "do": "submit", "operation": "op-1"}
_LONG: Final = {"op-1": {"takes_s": 60}}
_SLOW_CANCEL: Final = {"cancel": {"takes_s": 30}}
_DEAF: Final = {"kind": "request_lost", "at": "cancel#*:received@op-1"}
_NO_KEYS: Final = {"idempotency": {"mechanism": "none"}, "lookup": {"by": "none"}}


def _at(at: float, do: str, **more: Any) -> dict[str, Any]:
    return {"at": at, "do": do, "operation": "op-1", **more}


def _same_id(at: float, wait_s: float = 2.0) -> list[dict[str, Any]]:
    """Another operation's job gets the id of this one's: the next status read answers for somebody else."""
    return [_at(at, "submit", operation="op-2"), {"at": at + wait_s, "do": "wait"}]


_REUSED: Final = {"kind": "job_id_reused", "at": "create#1:received@op-2"}

_TABLE: Final[tuple[tuple[tuple[tuple[str, str], ...], Mapping[str, Any]], ...]] = (
    (
        (
            ("create_pending", "accepted"),
            ("accepted", "observing"),
            ("observing", "result_collecting"),
            ("result_collecting", "succeeded"),
        ),
        {"steps": [_SUBMIT, {"at": 4, "do": "wait"}]},
    ),
    (
        (("observing", "cancel_requested"), ("cancel_requested", "cancelling"), ("cancelling", "cancelled")),
        {"work": _LONG, "steps": [_SUBMIT, _at(0.5, "cancel"), {"at": 4, "do": "wait"}]},
    ),
    (
        (("cancelling", "cancellation_unconfirmed"),),
        {"contract": _SLOW_CANCEL, "work": _LONG, "steps": [_SUBMIT, _at(0.5, "cancel"), {"at": 8, "do": "wait"}]},
    ),
    (
        (("cancelling", "result_collecting"),),
        {
            "contract": _SLOW_CANCEL,
            "work": _LONG,
            "steps": [_SUBMIT, _at(0.5, "cancel"), _at(0.7, "complete"), {"at": 4, "do": "wait"}],
        },
    ),
    (
        (("cancel_requested", "result_collecting"),),
        {
            "work": _LONG,
            "faults": [_DEAF],
            "steps": [_SUBMIT, _at(0.5, "cancel"), _at(0.7, "complete"), {"at": 4, "do": "wait"}],
        },
    ),
    (
        (("observing", "result_timed_out"),),
        {"timing": {"result_deadline_s": 2}, "work": _LONG, "steps": [_SUBMIT, {"at": 5, "do": "wait"}]},
    ),
    (
        (("reconciliation", _WAITING),),
        {
            "contract": _NO_KEYS,
            "faults": [{"kind": "answer_lost", "at": "create#1:committed@op-1"}],
            "steps": [_SUBMIT, {"at": 3, "do": "wait"}],
        },
    ),
    (
        (("create_pending", "failed"),),
        {"faults": [{"kind": "create_rejected", "at": "create#1:received"}], "steps": [_SUBMIT]},
    ),
    (
        (("reconciliation", "failed"),),
        {
            "faults": [
                {"kind": "answer_lost", "at": "create#1:committed"},
                {"kind": "create_rejected", "at": "create#2:received"},
            ],
            "steps": [_SUBMIT, {"at": 4, "do": "wait"}],
        },
    ),
    (
        (
            ("create_pending", "create_unknown"),
            ("create_unknown", "reconciliation"),
            ("reconciliation", "create_unknown"),
            ("reconciliation", "accepted"),
        ),
        {
            "faults": [{"kind": "answer_lost", "at": "create#1:committed", "times": 2}],
            "steps": [_SUBMIT, {"at": 4, "do": "wait"}],
        },
    ),
    (
        (("create_pending", "withdrawn"),),
        {
            "workers": 2,
            "faults": [{"kind": "kill", "at": "store[create_pending]#1:committed"}],
            "steps": [_SUBMIT, _at(0, "cancel"), {"at": 3, "do": "wait"}],
        },
    ),
    (
        (("create_pending", _WAITING), ("reconciliation", "create_pending")),
        {
            "contract": {"idempotency": {"mechanism": "none"}},
            "faults": [
                {"kind": "answer_cut", "at": "create#1:answering"},
                {"kind": "stale_read", "at": "lookup#1:committed"},
            ],
            "steps": [_SUBMIT, {"at": 4, "do": "wait"}],
        },
    ),
    (
        (("create_pending", "result_collecting"), ("reconciliation", "result_collecting")),
        {
            "contract": {"create_answer": "synchronous"},
            "faults": [{"kind": "answer_lost", "at": "create#1:committed@op-1"}],
            "steps": [_SUBMIT, _at(1, "submit", operation="op-2"), {"at": 4, "do": "wait"}],
        },
    ),
    (
        (("observing", "cancelled"),),
        {"work": {"op-1": {"takes_s": 1, "outcome": "cancelled"}}, "steps": [_SUBMIT, {"at": 3, "do": "wait"}]},
    ),
    (
        (("observing", "failed"),),
        {"work": _LONG, "steps": [_SUBMIT, _at(1, "fail"), {"at": 3, "do": "wait"}]},
    ),
    (
        (("accepted", "cancel_requested"),),
        {
            "work": _LONG,
            "faults": [{"kind": "answer_lost", "at": "create#1:committed"}],
            "steps": [_SUBMIT, _at(0.5, "cancel"), {"at": 3, "do": "wait"}],
        },
    ),
    (
        (("observing", _WAITING),),
        {"work": _LONG, "faults": [_REUSED], "steps": [_SUBMIT, *_same_id(1)]},
    ),
    (
        (("cancel_requested", _WAITING),),
        {"work": _LONG, "faults": [_DEAF, _REUSED], "steps": [_SUBMIT, _at(0.5, "cancel"), *_same_id(0.6)]},
    ),
    (
        (("cancelling", _WAITING),),
        {
            "contract": _SLOW_CANCEL,
            "work": _LONG,
            "faults": [_REUSED],
            "steps": [_SUBMIT, _at(0.5, "cancel"), *_same_id(0.6)],
        },
    ),
    (
        (("cancelling", "failed"),),
        {
            "contract": _SLOW_CANCEL,
            "work": _LONG,
            "steps": [_SUBMIT, _at(0.5, "cancel"), _at(0.7, "fail"), {"at": 4, "do": "wait"}],
        },
    ),
    (
        (("cancel_requested", "failed"),),
        {
            "work": _LONG,
            "faults": [_DEAF],
            "steps": [_SUBMIT, _at(0.5, "cancel"), _at(0.7, "fail"), {"at": 4, "do": "wait"}],
        },
    ),
    (
        (("cancel_requested", "cancelled"),),
        {
            "faults": [{"kind": "answer_lost", "at": "cancel#1:committed"}],
            "work": _LONG,
            "steps": [_SUBMIT, _at(0.5, "cancel"), {"at": 4, "do": "wait"}],
        },
    ),
    (
        (("cancel_requested", "cancellation_unconfirmed"),),
        {
            "work": _LONG,
            "faults": [_DEAF],
            "steps": [_SUBMIT, _at(0.5, "cancel"), {"at": 8, "do": "wait"}],
        },
    ),
    *(
        (
            (("cancellation_unconfirmed", after),),
            {
                "contract": {"cancel": {"takes_s": takes_s}},
                "work": _LONG,
                "faults": faults,
                "steps": [
                    _SUBMIT,
                    _at(0.5, "cancel"),
                    *({**step, "at": 8} for step in before),
                    _at(9, "reconcile"),
                    {"at": 11, "do": "wait"},
                ],
            },
        )
        for after, takes_s, faults, before in (
            ("result_collecting", 30, [], [_at(8, "complete")]),
            ("failed", 30, [], [_at(8, "fail")]),
            ("cancelled", 7, [], []),
            (_WAITING, 30, [_REUSED], [_at(8, "submit", operation="op-2")]),
        )
    ),
    *(
        (
            (("result_timed_out", after),),
            {
                "timing": {"result_deadline_s": 2},
                "work": {"op-1": work},
                "faults": faults,
                "steps": [_SUBMIT, *steps, {"at": 7, "do": "wait"}],
            },
        )
        for after, work, faults, steps in (
            ("result_collecting", {"takes_s": 60}, [], [_at(4, "complete"), _at(5, "reconcile")]),
            ("failed", {"takes_s": 60}, [], [_at(4, "fail"), _at(5, "reconcile")]),
            ("cancelled", {"takes_s": 4, "outcome": "cancelled"}, [], [_at(5, "reconcile")]),
            ("cancel_requested", {"takes_s": 60}, [], [_at(4, "cancel")]),
            (_WAITING, {"takes_s": 60}, [_REUSED], [_at(4, "submit", operation="op-2"), _at(5, "reconcile")]),
        )
    ),
    (
        (("result_collecting", _WAITING),),
        {
            "contract": {"result": {"kind": "signed_url"}},
            "work": {"op-1": {"takes_s": 0.5}},
            "faults": [{"kind": "result_expired", "at": "result#1:received@op-1"}, _REUSED],
            "steps": [_SUBMIT, *_same_id(1.1)],
        },
    ),
    (
        (("result_collecting", "result_unavailable"), ("result_unavailable", "result_collecting")),
        {
            "contract": {"result": {"kind": "one_time"}},
            "work": {"op-1": {"takes_s": 0.5}},
            "faults": [{"kind": "result_consumed", "at": "result#1:received"}],
            "steps": [_SUBMIT, _at(3, "reconcile"), {"at": 4, "do": "wait"}],
        },
    ),
    (
        (("result_collecting", "result_validation_failed"), ("result_validation_failed", "result_collecting")),
        {
            "work": {"op-1": {"takes_s": 0.5}},
            "faults": [{"kind": "result_wrong_type", "at": "result#1:committed"}],
            "steps": [_SUBMIT, _at(3, "reconcile"), {"at": 4, "do": "wait"}],
        },
    ),
    *(
        (
            ((_WAITING, state),),
            {
                "contract": _NO_KEYS,
                "faults": [{"kind": "answer_lost", "at": "create#1:committed@op-1"}],
                "steps": [_SUBMIT, _at(3, "decide", state=state), {"at": 4, "do": "wait"}],
            },
        )
        for state in get_args(DecidedState)
    ),
)


@cache
def leads() -> tuple[Lead, ...]:
    """All leads."""
    return tuple(
        Lead(
            edges=tuple(edge(*each) for each in edges),
            opening=Scenario.model_validate({"name": f"lead-{number}", "summary": "A beginning.", **opening}),
        )
        for number, (edges, opening) in enumerate(_TABLE, start=1)
    )


@cache
def leads_to_kind(kind: str) -> tuple[Lead, ...]:
    """Beginnings in which a fault of that kind strikes: the stories of the catalogue that have one."""
    return tuple(lead for lead in stories() if kind in _kinds(lead.opening))


@cache
def stories() -> tuple[Lead, ...]:
    """The stories of the catalogue that can be simulated, as beginnings."""
    told = (story for story in load_catalogue().values() if "simulated" in story.modes)
    return tuple(Lead(edges=(), opening=story) for story in told)


def _kinds(story: Scenario) -> set[str]:
    armed = (step.fault for step in story.steps if isinstance(step, Arm))
    return {fault.kind for fault in (*story.faults, *armed)}
