"""The local states of an operation, and every transition between them with the evidence it needs (W5). Nothing else
lives here.

This is what the client believes of an *operation*. What the provider says of a *job* is another lifecycle, kept in
other fields of the record (W5.2).
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

__all__ = [
    "AT_REST",
    "FINAL",
    "TRANSITIONS",
    "WITHOUT_JOB",
    "Evidence",
    "IllegalTransition",
    "LocalState",
    "check",
]


class LocalState(StrEnum):
    CREATE_PENDING = "create_pending"
    CREATE_UNKNOWN = "create_unknown"
    RECONCILIATION = "reconciliation"
    ACCEPTED = "accepted"
    OBSERVING = "observing"
    CANCEL_REQUESTED = "cancel_requested"
    CANCELLING = "cancelling"
    RESULT_COLLECTING = "result_collecting"
    RESULT_TIMED_OUT = "result_timed_out"
    CANCELLATION_UNCONFIRMED = "cancellation_unconfirmed"
    RESULT_UNAVAILABLE = "result_unavailable"
    RESULT_VALIDATION_FAILED = "result_validation_failed"
    HUMAN_DECISION_REQUIRED = "human_decision_required"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    WITHDRAWN = "withdrawn"


class Evidence(StrEnum):
    """What has to be known before a transition is recorded: the right column of the table in W5."""

    SUBMITTED = "an operation is submitted"
    ANSWER_NAMES_JOB = "the provider's answer names the job"
    SYNCHRONOUS_SUCCESS = "synchronous success"
    AMBIGUOUS_FAILURE = "an ambiguous failure: class, attempt"
    DEFINITE_REJECTION = "a definite rejection"
    STOPPED_BEFORE_SENDING = "told to stop before anything was ever sent"
    RECONCILING_BEGINS = "a reconciling action begins"
    RECONCILED_TO_JOB = "a re-send or look-up names the job"
    RECONCILED_TO_SUCCESS = "a re-send returns the synchronous success"
    RECONCILING_AMBIGUOUS = "the reconciling action was itself ambiguous"
    ABSENCE_PROVED = "a look-up the contract calls authoritative proves absence"
    NO_WAY_TO_RECONCILE = "no mechanism, or create deadline passed and still unknown"
    OBSERVATION_SCHEDULED = "observation scheduled under a lease"
    STOP_COMMAND = "a recorded stop command"
    PROVIDER_REPORTS_FAILURE = "the provider reports failure"
    CANCELLED_BY_OTHERS = "the provider reports cancelled though nobody here asked"
    STATUS_SUCCESS = "a status read reports success"
    RESULT_DEADLINE = "the result deadline passed"
    CANCEL_ANSWERED = "the provider answered the cancel call"
    STATUS_CANCELLED = "a status read reports cancelled"
    STATUS_SUCCESS_WON = "a status read reports success: completion won"
    STATUS_FAILURE = "a status read reports failure"
    CANCEL_DEADLINE = "the cancel deadline passed"
    LATER_READ = "a recorded later reconciliation read"
    RESULT_VALIDATED = "result retrieved and validated"
    RETRIEVAL_FAILED = "retrieval failed for good"
    VALIDATION_FAILED = "validation failed"
    OPERATOR_RETRY = "a recorded operator retry"
    CONTRACT_VIOLATION = "contract violation"
    HUMAN_DECISION = "a recorded human decision, with who and why"


_S = LocalState
_E = Evidence

FINAL: Final = frozenset({_S.SUCCEEDED, _S.FAILED, _S.CANCELLED, _S.WITHDRAWN})
"""Nothing follows, ever."""

AT_REST: Final = FINAL | {
    _S.RESULT_TIMED_OUT,
    _S.CANCELLATION_UNCONFIRMED,
    _S.RESULT_UNAVAILABLE,
    _S.RESULT_VALIDATION_FAILED,
    _S.HUMAN_DECISION_REQUIRED,
}
"""Nothing follows until someone acts."""


WITHOUT_JOB: Final = frozenset({_S.CREATE_PENDING, _S.CREATE_UNKNOWN, _S.RECONCILIATION, _S.HUMAN_DECISION_REQUIRED})
"""In these no job may be known yet; leaving them is how one becomes known."""


def _table() -> Mapping[tuple[LocalState, LocalState], frozenset[Evidence]]:
    rows: list[tuple[tuple[LocalState, ...], tuple[LocalState, ...], Evidence]] = [
        ((_S.CREATE_PENDING,), (_S.ACCEPTED,), _E.ANSWER_NAMES_JOB),
        ((_S.CREATE_PENDING,), (_S.RESULT_COLLECTING,), _E.SYNCHRONOUS_SUCCESS),
        ((_S.CREATE_PENDING,), (_S.CREATE_UNKNOWN,), _E.AMBIGUOUS_FAILURE),
        ((_S.CREATE_PENDING,), (_S.FAILED,), _E.DEFINITE_REJECTION),
        ((_S.CREATE_PENDING,), (_S.WITHDRAWN,), _E.STOPPED_BEFORE_SENDING),
        ((_S.CREATE_UNKNOWN,), (_S.RECONCILIATION,), _E.RECONCILING_BEGINS),
        ((_S.RECONCILIATION,), (_S.ACCEPTED,), _E.RECONCILED_TO_JOB),
        ((_S.RECONCILIATION,), (_S.RESULT_COLLECTING,), _E.RECONCILED_TO_SUCCESS),
        ((_S.RECONCILIATION,), (_S.CREATE_UNKNOWN,), _E.RECONCILING_AMBIGUOUS),
        ((_S.RECONCILIATION,), (_S.CREATE_PENDING,), _E.ABSENCE_PROVED),
        ((_S.RECONCILIATION,), (_S.FAILED,), _E.DEFINITE_REJECTION),
        ((_S.RECONCILIATION,), (_S.HUMAN_DECISION_REQUIRED,), _E.NO_WAY_TO_RECONCILE),
        ((_S.ACCEPTED,), (_S.OBSERVING,), _E.OBSERVATION_SCHEDULED),
        ((_S.ACCEPTED, _S.OBSERVING), (_S.CANCEL_REQUESTED,), _E.STOP_COMMAND),
        ((_S.ACCEPTED, _S.OBSERVING), (_S.FAILED,), _E.PROVIDER_REPORTS_FAILURE),
        ((_S.OBSERVING,), (_S.CANCELLED,), _E.CANCELLED_BY_OTHERS),
        ((_S.OBSERVING,), (_S.RESULT_COLLECTING,), _E.STATUS_SUCCESS),
        ((_S.OBSERVING,), (_S.RESULT_TIMED_OUT,), _E.RESULT_DEADLINE),
        ((_S.CANCEL_REQUESTED,), (_S.CANCELLING,), _E.CANCEL_ANSWERED),
        ((_S.CANCEL_REQUESTED, _S.CANCELLING), (_S.CANCELLED,), _E.STATUS_CANCELLED),
        ((_S.CANCEL_REQUESTED, _S.CANCELLING), (_S.RESULT_COLLECTING,), _E.STATUS_SUCCESS_WON),
        ((_S.CANCEL_REQUESTED, _S.CANCELLING), (_S.FAILED,), _E.STATUS_FAILURE),
        ((_S.CANCEL_REQUESTED, _S.CANCELLING), (_S.CANCELLATION_UNCONFIRMED,), _E.CANCEL_DEADLINE),
        (
            (_S.RESULT_TIMED_OUT, _S.CANCELLATION_UNCONFIRMED),
            (_S.RESULT_COLLECTING, _S.FAILED, _S.CANCELLED),
            _E.LATER_READ,
        ),
        ((_S.RESULT_TIMED_OUT,), (_S.CANCEL_REQUESTED,), _E.STOP_COMMAND),
        ((_S.RESULT_COLLECTING,), (_S.SUCCEEDED,), _E.RESULT_VALIDATED),
        ((_S.RESULT_COLLECTING,), (_S.RESULT_UNAVAILABLE,), _E.RETRIEVAL_FAILED),
        ((_S.RESULT_COLLECTING,), (_S.RESULT_VALIDATION_FAILED,), _E.VALIDATION_FAILED),
        ((_S.RESULT_UNAVAILABLE, _S.RESULT_VALIDATION_FAILED), (_S.RESULT_COLLECTING,), _E.OPERATOR_RETRY),
        (
            tuple(state for state in _S if state not in FINAL and state is not _S.HUMAN_DECISION_REQUIRED),
            (_S.HUMAN_DECISION_REQUIRED,),
            _E.CONTRACT_VIOLATION,
        ),
        (
            (_S.HUMAN_DECISION_REQUIRED,),
            tuple(state for state in _S if state is not _S.HUMAN_DECISION_REQUIRED),
            _E.HUMAN_DECISION,
        ),
    ]
    table: dict[tuple[LocalState, LocalState], frozenset[Evidence]] = {}
    for befores, afters, evidence in rows:
        for before in befores:
            for after in afters:
                table[before, after] = table.get((before, after), frozenset()) | {evidence}
    return MappingProxyType(table)


TRANSITIONS: Final = _table()
"""(before, after) to the evidence that allows it. A pair that is absent is refused (W5.1)."""


class IllegalTransition(RuntimeError):
    """A transition that is not in :data:`TRANSITIONS`, or not with this evidence. Nothing was changed."""


def check(before: LocalState, after: LocalState, evidence: Evidence) -> None:
    """Return if the table allows ``before -> after`` on ``evidence``.

    Raises:
        IllegalTransition: otherwise; the message says what would have been allowed.
    """
    allowed = TRANSITIONS.get((before, after))
    if allowed is None:
        afters = sorted(to for start, to in TRANSITIONS if start is before)
        raise IllegalTransition(
            f"an operation does not go from {before} to {after}, only to {', '.join(afters) or 'nothing: it is final'}"
        )
    if evidence not in allowed:
        raise IllegalTransition(
            f"{before} to {after} needs {' or '.join(sorted(repr(str(e)) for e in allowed))}, not {str(evidence)!r}"
        )
