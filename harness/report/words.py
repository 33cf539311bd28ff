"""One sentence for every kind of fact: who did what, from the fact alone. Which facts are worth telling: ``story``."""

from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec

from fake_provider import facts
from fake_provider.facts import CommitPoint, Fact, Fate
from harness import history

__all__ = ["HARNESS", "PROVIDER", "Sentence", "answer", "describe", "short", "tellers"]

HARNESS: Final = "harness"
PROVIDER: Final = "provider"

_AT_POINT: Final = {
    CommitPoint.BEFORE_RECEIPT: "before the request reached the other side",
    CommitPoint.RECEIVED: "with the request read and nothing done yet",
    CommitPoint.COMMITTED: "with the effect applied and no answer sent",
    CommitPoint.ANSWERING: "with the answer partly sent",
    CommitPoint.DELIVERED: "with the answer just delivered",
}
_AT_STORE: Final = {
    CommitPoint.RECEIVED: "just before the write",
    CommitPoint.COMMITTED: "with the write durable and the client not yet told",
}

_HOW_ENDED: Final = {"killed": "is killed", "stopped": "ends in good order", "crashed": "crashes by itself"}


class Sentence(msgspec.Struct, frozen=True):
    """``actor`` is a worker, "provider", "harness", or "fault"."""

    actor: str
    text: str


_F = TypeVar("_F", bound=Fact)
_TELLERS: Final[dict[type[Fact], Callable[[Any], Sentence]]] = {}


def describe(fact: Fact) -> Sentence:
    """Say in words what ``fact`` records."""
    return _TELLERS[type(fact)](fact)


def short(identifier: str | None) -> str:
    """The first characters of a long random identifier: enough to tell two apart in one run."""
    if identifier is None:
        return "none"
    return identifier if len(identifier) <= 14 else f"{identifier[:12]}…"


def _tells(kind: type[_F]) -> Callable[[Callable[[_F], Sentence]], Callable[[_F], Sentence]]:
    def register(teller: Callable[[_F], Sentence]) -> Callable[[_F], Sentence]:
        _TELLERS[kind] = teller
        return teller

    return register


def _of(operation: str | None, job: str | None = None) -> str:
    named = [part for part in (operation, job) if part]
    return f" of {' / '.join(named)}" if named else ""


@_tells(facts.RequestSent)
def _request(fact: facts.RequestSent) -> Sentence:
    what = f"sends {fact.endpoint}{_of(fact.operation, fact.job)}"
    if fact.token is not None:
        what += f" with token {short(fact.token)}"
    if fact.copy_of is not None:
        what += " (the same request, delivered once more by the network)"
    return Sentence(fact.worker, what)


@_tells(facts.AnswerEnded)
def _answer(fact: facts.AnswerEnded) -> Sentence:
    return Sentence(fact.worker, f"{fact.endpoint}{_of(fact.operation)}: {answer(fact)}")


def answer(fact: facts.AnswerEnded) -> str:
    """What became of an answer, without saying to which request."""
    told = "no answer" if fact.status is None else f"{fact.status}"
    if fact.problem:
        told += f" {fact.problem}"
    if fact.job and fact.endpoint in {facts.Endpoint.CREATE, facts.Endpoint.LOOKUP}:
        told += f" naming {fact.job}"
    if fact.remote_state:
        told += f" {fact.remote_state}"
    if fact.progress is not None and fact.canonical_state == "running":
        told += f" {fact.progress} %"
    if fact.replayed:
        told += ", a replay of the first answer"
    if fact.retry_after_s is not None:
        told += f", come back after {fact.retry_after_s:g} s"
    if fact.from_fault:
        told += " (made by a fault)"
    match fact.fate:
        case Fate.DELIVERED:
            return told
        case Fate.LOST:
            return "no answer came" if fact.status is None else f"{told}, but no answer came through"
        case Fate.CUT:
            return f"{told}, cut short on the way"
        case Fate.RESET:
            return "the connection was reset" if fact.status is None else f"{told}, but the connection was reset"
        case Fate.ABANDONED:
            return f"{told}, but the client was gone before it came"


@_tells(facts.JobCreated)
def _created(fact: facts.JobCreated) -> Sentence:
    kind = "done at once" if fact.synchronous else "a new job"
    return Sentence(PROVIDER, f"takes the create of {fact.operation or 'no known operation'} as {fact.job}, {kind}")


@_tells(facts.JobMoved)
def _moved(fact: facts.JobMoved) -> Sentence:
    text = f"{fact.job} goes from {fact.before} to {fact.after} ({fact.cause})"
    if fact.records is not None:
        text += f" with {fact.records} records"
        if fact.failed_items:
            text += f", {fact.failed_items} of them failed"
    return Sentence(PROVIDER, text)


@_tells(facts.CancelTaken)
def _cancel(fact: facts.CancelTaken) -> Sentence:
    meaning = {
        "cancelled": "it is cancelled",
        "cancelling": "it will be cancelled unless it ends first",
        "ignored": "and ignores it",
        "already_terminal": "too late, it is finished",
    }
    return Sentence(PROVIDER, f"receives the cancel of {fact.job}: {meaning.get(fact.effect, fact.effect)}")


@_tells(facts.ResultRead)
def _read(fact: facts.ResultRead) -> Sentence:
    again = "" if fact.time == 1 else f", for the {fact.time}. time"
    return Sentence(
        PROVIDER, f"serves the result of {fact.job}: {fact.size_bytes} bytes, sha256 {short(fact.sha256)}{again}"
    )


@_tells(facts.EventSent)
def _event(fact: facts.EventSent) -> Sentence:
    told = f"sends webhook {short(fact.event)} {fact.type} of {fact.job}, attempt {fact.attempt}"
    return Sentence(PROVIDER if fact.genuine else "forger", told if fact.genuine else f"{told}, with a false signature")


@_tells(facts.EventDelivered)
def _delivered(fact: facts.EventDelivered) -> Sentence:
    came = "does not answer" if fact.status is None else f"answers {fact.status} to"
    return Sentence(fact.worker or "receiver", f"{came} webhook {short(fact.event)}")


@_tells(facts.FaultStruck)
def _struck(fact: facts.FaultStruck) -> Sentence:
    points = _AT_STORE if fact.endpoint is facts.Endpoint.STORE else _AT_POINT
    whom = f", against {fact.worker}" if fact.worker else ""
    return Sentence("fault", f"{fact.kind} strikes at {fact.address}{whom}: {points.get(fact.point, fact.point)}")


@_tells(facts.FaultsHealed)
def _healed(fact: facts.FaultsHealed) -> Sentence:
    return Sentence(HARNESS, f"heals: no more faults from here; {fact.struck} of {fact.planned} struck")


@_tells(history.RunStarted)
def _started(fact: history.RunStarted) -> Sentence:
    contract = fact.contract.get("name", "unnamed")
    return Sentence(HARNESS, f"starts {fact.scenario}, {fact.mode}, seed {fact.seed}, contract {contract}")


@_tells(history.Commanded)
def _commanded(fact: history.Commanded) -> Sentence:
    text = f"tells {fact.worker} to {fact.command} {fact.operation}"
    if fact.decided is not None:
        text = f"tells {fact.worker} that {fact.operation} is to go on as {fact.decided}"
    if fact.repeat_of:
        text += " once more"
    if fact.changed:
        text += " with another request under the same id"
    return Sentence(HARNESS, text)


@_tells(history.WorkerStarted)
def _worker(fact: history.WorkerStarted) -> Sentence:
    return Sentence(fact.worker, "starts" if fact.life == 1 else f"starts again (life {fact.life})")


@_tells(history.WorkerStopped)
def _stopped(fact: history.WorkerStopped) -> Sentence:
    return Sentence(fact.worker, "is stopped: frozen, its timers run on")


@_tells(history.WorkerResumed)
def _resumed(fact: history.WorkerResumed) -> Sentence:
    return Sentence(fact.worker, "is resumed")


@_tells(history.ClockSet)
def _clock_set(fact: history.ClockSet) -> Sentence:
    if not fact.ahead_s:
        return Sentence(fact.worker, "has its clock set right")
    error = f"{abs(fact.ahead_s):g} s {'ahead' if fact.ahead_s > 0 else 'behind'}"
    return Sentence(fact.worker, f"has its clock set {error} of true time")


@_tells(history.WorkerEnded)
def _ended(fact: history.WorkerEnded) -> Sentence:
    told = _HOW_ENDED.get(fact.how, fact.how)
    return Sentence(fact.worker, f"{told}: {fact.detail}" if fact.detail else told)


@_tells(history.ProcessReaped)
def _reaped(fact: history.ProcessReaped) -> Sentence:
    return Sentence(fact.worker, f"its process ended with {fact.status}")


@_tells(history.StateRecorded)
def _recorded(fact: history.StateRecorded) -> Sentence:
    if fact.before == fact.after:
        text = f"records of {fact.operation} ({fact.entry}, {fact.after}): {fact.reason}"
    elif fact.before is None:
        text = f"records {fact.operation} as {fact.after}: {fact.reason}"
    else:
        text = f"records {fact.operation}: {fact.before} → {fact.after}: {fact.reason}"
    return Sentence(fact.worker, text)


@_tells(history.LeaseNoted)
def _lease(fact: history.LeaseNoted) -> Sentence:
    lasts = f", for {fact.lasts_s:.3g} s" if fact.lasts_s else ""
    return Sentence(fact.worker, f"lease on {fact.operation} {fact.what} (fence {fact.fence}){lasts}")


@_tells(history.CommandRefused)
def _refused(fact: history.CommandRefused) -> Sentence:
    return Sentence(fact.worker, f"refuses to {fact.command} {fact.operation}: {fact.reason}")


@_tells(history.SecretSaid)
def _secret(fact: history.SecretSaid) -> Sentence:
    return Sentence(fact.worker, f"says a secret in a {fact.where}")


@_tells(history.SubjectComplained)
def _complained(fact: history.SubjectComplained) -> Sentence:
    return Sentence(fact.worker, f"complains: {fact.message}")


@_tells(history.Claimed)
def _claimed(fact: history.Claimed) -> Sentence:
    text = f"claims {fact.operation} {fact.state}"
    if fact.remote_job:
        text += f" as {fact.remote_job}"
    if fact.records is not None:
        text += f", {fact.records} records"
        if fact.failed_items:
            text += f", {fact.failed_items} of them failed"
    if fact.explanation:
        text += f": {fact.explanation}"
    return Sentence(fact.worker, text)


@_tells(history.LedgerRead)
def _ledger(fact: history.LedgerRead) -> Sentence:
    return Sentence(PROVIDER, f"holds {fact.job} for {fact.operation or 'no known operation'}, {fact.state}")


@_tells(history.RunEnded)
def _run_ended(fact: history.RunEnded) -> Sentence:
    rest = "everything is at rest" if fact.at_rest else "not everything came to rest"
    return Sentence(HARNESS, f"ends the run: {rest} {fact.drained_s:.3g} s after healing")


def tellers() -> frozenset[type[Fact]]:
    """The kinds of fact that can be put in words; a test holds this against the vocabulary."""
    return frozenset(_TELLERS)
