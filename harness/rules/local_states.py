"""The local states of an operation and the edges between them, as the requirements have them (W5).

A statement of what is required, on purpose not shared with any client: a client that judged itself by its own table
could not fail.
"""

from types import MappingProxyType
from typing import Final

__all__ = ["EDGES", "FINAL", "REST_STATES", "WAITING_FOR_A_PERSON", "is_legal"]

FINAL: Final = frozenset({"succeeded", "failed", "cancelled", "withdrawn"})

WAITING_FOR_A_PERSON: Final = frozenset({"human_decision_required", "result_unavailable", "result_validation_failed"})
"""States that only a person's command ends. (``result_timed_out`` and ``cancellation_unconfirmed`` end by a later
read, too.)"""

REST_STATES: Final = FINAL | WAITING_FOR_A_PERSON | {"result_timed_out", "cancellation_unconfirmed"}

EDGES: Final = MappingProxyType(
    {
        "create_pending": frozenset({"accepted", "result_collecting", "create_unknown", "failed", "withdrawn"}),
        "create_unknown": frozenset({"reconciliation"}),
        "reconciliation": frozenset({"accepted", "result_collecting", "create_unknown", "create_pending", "failed"}),
        "accepted": frozenset({"observing", "cancel_requested", "failed"}),
        "observing": frozenset({"cancel_requested", "failed", "cancelled", "result_collecting", "result_timed_out"}),
        "cancel_requested": frozenset(
            {"cancelling", "cancelled", "result_collecting", "failed", "cancellation_unconfirmed"}
        ),
        "cancelling": frozenset({"cancelled", "result_collecting", "failed", "cancellation_unconfirmed"}),
        "result_timed_out": frozenset({"result_collecting", "failed", "cancelled", "cancel_requested"}),
        "cancellation_unconfirmed": frozenset({"result_collecting", "failed", "cancelled"}),
        "result_collecting": frozenset({"succeeded", "result_unavailable", "result_validation_failed"}),
        "result_unavailable": frozenset({"result_collecting"}),
        "result_validation_failed": frozenset({"result_collecting"}),
        "human_decision_required": frozenset(),  # by a recorded decision, to any state: see is_legal
        "succeeded": frozenset[str](),
        "failed": frozenset[str](),
        "cancelled": frozenset[str](),
        "withdrawn": frozenset[str](),
    }
)


def is_legal(before: str | None, after: str) -> bool:
    """Whether an operation may go from ``before`` (None: no record yet) to ``after``. Staying is no transition."""
    if before is None:
        return after == "create_pending"
    if before == after:
        return True
    if before == "human_decision_required":
        return after in EDGES
    if after == "human_decision_required":
        return before in EDGES and before not in FINAL
    return after in EDGES.get(before, ())
