"""One walk through the model: what may happen next, in words, and what comes of it. ``model`` walks them all.

Pure, as what it puts together: no HTTP, no event loop, and time passes when there is nothing else to do.
"""

import hashlib
from base64 import b64encode
from random import Random
from typing import Any, Final

import msgspec

from fake_provider.addresses import Address
from fake_provider.boundary import Boundary
from fake_provider.contract import Contract, Result, ResultKind
from fake_provider.effects import HostEffect, KillHost, Send, StopHost
from fake_provider.facts import CommitPoint, Endpoint, Fate, credential_digest
from fake_provider.faults.host import Kill, Stop
from fake_provider.faults.kinds import Fault
from fake_provider.faults.network import AnswerLost, RequestLost
from fake_provider.mailroom import Departure
from fake_provider.webhooks import Pending
from fake_provider.work import DEFAULT, Work
from harness.history import (
    Claimed,
    Commanded,
    History,
    LeaseNoted,
    LedgerRead,
    RunEnded,
    RunStarted,
    StateRecorded,
    WorkerEnded,
    WorkerResumed,
    WorkerStarted,
    WorkerStopped,
)
from harness.rules.judge import Judge
from harness.subject import LeaseNote, Note, Recorded
from harness.subjects.pure import Burst, Calling, Claiming, Doing, PureReference, Writing
from scenarios.model import Timing

__all__ = ["STOP", "Bounds", "Walk"]

_EPOCH: Final = 1_767_225_600.0
_BASE_URL: Final = "http://provider.test"
_AUTHORIZATION: Final = "Bearer model"
_OPERATION: Final = "op-1"
_SECRETS: Final = ("whsec_" + b64encode(b"a secret of the model").decode(),)
_REQUEST: Final = {"kind": "report", "client_reference": _OPERATION, "parameters": {}}
_RESTART_S: Final = 1.0
_TIME: Final = "time passes"
STOP: Final = "a person says stop"
_P = CommitPoint

_AT_CALLS: Final[dict[str, tuple[type[Fault], CommitPoint]]] = {
    "its request is lost": (RequestLost, _P.RECEIVED),
    "its answer is lost": (AnswerLost, _P.COMMITTED),
    "it dies before it is heard": (Kill, _P.BEFORE_RECEIPT),
    "it dies while it waits": (Kill, _P.COMMITTED),
    "it freezes while it waits": (Stop, _P.RECEIVED),
}
_AT_WRITES: Final[dict[str, tuple[type[Fault], CommitPoint]]] = {
    "it dies before it writes": (Kill, _P.RECEIVED),
    "it dies when it has written": (Kill, _P.COMMITTED),
    "it freezes when it has written": (Stop, _P.COMMITTED),
}
"""What can go wrong with a worker's next step, in words that a path can be read in."""

_ARRIVES: Final = "it arrives"
_LOST: Final = "it is lost"
_UNHEARD: Final = "it arrives, and its answer is lost"
_TWICE: Final = "it arrives, and will once more"
_AT_WEBHOOKS: Final = (_LOST, _UNHEARD, _TWICE)


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """How much there is of everything."""

    workers: int = 2
    faults: int = 2
    stops: int = 0  # commands to stop, each given whenever a person likes
    contract: Contract = Contract(result=Result(kind=ResultKind.INLINE))
    timing: Timing = Timing(
        poll_first_s=1, poll_cap_s=2, poll_jitter=0, create_deadline_s=6, result_deadline_s=8, cancel_deadline_s=4
    )
    work: Work = Work(takes_s=1)


class _Hand:
    """One worker: what it is in the midst of."""

    def __init__(self, burst: Burst) -> None:
        self.begin(burst)
        self.is_alive = True
        self.resumes_at: float | None = None  # frozen until then; dead: started again then

    def begin(self, burst: Burst) -> None:
        self.burst = burst
        self.doing: Doing = next(burst)
        self.result: Any = None  # of what it does, once that is there
        self.result_at: float | None = None

    @property
    def is_idle(self) -> bool:
        return isinstance(self.doing, Claiming)

    def fingerprint(self) -> object:
        return (type(self.doing).__name__, self.doing, self.result, self.result_at, self.is_alive, self.resumes_at)


class Walk:
    """One way through the model, up to where it has come."""

    def __init__(self, bounds: Bounds, client: type[PureReference], path: tuple[str, ...] = ()) -> None:
        self._bounds = bounds
        self._now = _EPOCH
        self._faults_left = bounds.faults
        self._said_stop: list[float] = []  # when
        self._on_their_way: dict[str, Departure] = {}  # webhooks that have left, by what a path calls them
        self._lives: dict[str, int] = {}
        self._counted: dict[Endpoint, int] = dict.fromkeys(Endpoint, 0)
        self.judge = Judge()
        self._history = History(lambda: self._now - _EPOCH, [self.judge.observe])
        self._boundary = Boundary(
            bounds.contract,
            base_url=_BASE_URL,
            random=Random(0),
            record=self._history.record,
            work={DEFAULT: bounds.work},
            webhook_secrets=_SECRETS,
        )
        self._boundary.plan.when_begun(self._count)
        self._client = client(
            contract=bounds.contract.model_dump(mode="json"),
            timing=bounds.timing.model_dump(),
            base_url=_BASE_URL,
            authorization=_AUTHORIZATION,
            webhook_secrets=_SECRETS,
            note=self._note,
        )
        self._open()
        self._hands = {f"w{number}": _Hand(self._burst(f"w{number}")) for number in range(1, bounds.workers + 1)}
        for choice in path:
            self.choose(choice)

    def _open(self) -> None:
        record = self._history.record
        record(
            RunStarted(
                scenario="model",
                mode="simulated",
                seed=0,
                contract=self._bounds.contract.model_dump(mode="json"),
                timing=self._bounds.timing.model_dump(),
                credential=credential_digest(_AUTHORIZATION),
                origin=_BASE_URL,
            )
        )
        for number in range(1, self._bounds.workers + 1):
            record(WorkerStarted(worker=f"w{number}", life=1))
        record(Commanded(command="submit", operation=_OPERATION, worker="w1", fingerprint="sha256:model"))
        self._client.submit(_OPERATION, _REQUEST, worker="w1", now=self._now)

    # -- what may happen next

    def choices(self) -> list[str]:
        """Everything that may happen next, in words; nothing once all is at rest."""
        found: list[str] = []
        idle_is_in = False
        for name, hand in self._hands.items():
            if hand.resumes_at is not None or (hand.result_at is not None and hand.result_at > self._now):
                continue
            if hand.is_idle:
                # Idle workers are alike: whichever takes the operation, what follows is the same but for names.
                if not idle_is_in and self._client.shelf.is_due(self._now):
                    found.append(name)
                    idle_is_in = True
                continue
            found.append(name)
            if self._faults_left and hand.result_at is None:
                found += [f"{name}: {what}" for what in self._mishaps(hand.doing)]
        for name in self._on_their_way:
            found += [f"{name}: {_ARRIVES}", *(f"{name}: {what}" for what in _AT_WEBHOOKS if self._faults_left)]
        if not found and self._next_due() is not None:
            found.append(_TIME)
        if len(self._said_stop) < self._bounds.stops and self._listener() is not None:
            found.append(STOP)
        return found

    def _listener(self) -> str | None:
        """A worker that can be told something."""
        return next((name for name, hand in self._hands.items() if hand.resumes_at is None), None)

    @staticmethod
    def _mishaps(doing: Doing) -> dict[str, tuple[type[Fault], CommitPoint]]:
        if isinstance(doing, Calling):
            return _AT_CALLS
        return _AT_WRITES if isinstance(doing, Writing) else {}

    def _next_due(self) -> float | None:
        shelf = self._client.shelf
        due = [each for hand in self._hands.values() for each in (hand.resumes_at, hand.result_at) if each is not None]
        if shelf.wake_at is not None:
            due.append(shelf.wake_at)
            provider = self._boundary.next_due()
            due += [provider] if provider is not None else []
        return min((each for each in due if each > self._now), default=None)

    def choose(self, choice: str) -> None:
        """Let that happen."""
        if choice == _TIME:
            self._pass_time()
        elif choice == STOP:
            self._say_stop()
        else:
            name, _, what = choice.partition(": ")
            if name in self._on_their_way:
                self._deliver(self._on_their_way.pop(name), what)
            else:
                self._let_act(name, what)
        self._boundary.advance(self._now)
        for each in self._boundary.mail.departures(self._now):
            self._on_their_way[f"webhook {each.attempt.delivery}"] = each

    def _let_act(self, name: str, mishap: str) -> None:
        hand = self._hands[name]
        if mishap:
            self._faults_left -= 1
            self._arm(hand.doing, mishap)
        self._step(name, hand)

    def key(self) -> bytes:
        """A digest of the state: equal for paths from which the same may follow."""
        hands = [hand.fingerprint() for hand in self._hands.values()]
        # Part of it, whether the client remembers it or not: else one that forgets would be in the state of one to whom
        # nothing was said.
        under_way = [(each.attempt.event, each.attempt.attempt) for each in self._on_their_way.values()]
        state = msgspec.json.encode((self._now, self._faults_left, self._said_stop, hands, under_way))
        return hashlib.sha256(state + self._client.shelf.fingerprint() + self._boundary.fingerprint()).digest()

    def conclude(self) -> Any:
        """Everything rests: read the claims and the books, and judge what only the end can show."""
        self._boundary.plan.heal()
        claim = self._client.claim()
        record = self._history.record
        record(Claimed(worker="w1", at_rest=claim.at_rest, **msgspec.structs.asdict(claim)))
        for line in self._boundary.ledger(self._now):
            record(LedgerRead(**msgspec.structs.asdict(line)))
        record(RunEnded(at_rest=claim.at_rest, drained_s=0.0))
        return self.judge.conclude()

    # -- letting it happen

    def _pass_time(self) -> None:
        due = self._next_due()
        assert due is not None
        self._now = due
        self._boundary.advance(due)
        for name, hand in self._hands.items():
            if hand.resumes_at is not None and hand.resumes_at <= due:
                hand.resumes_at = None
                if hand.is_alive:
                    self._history.record(WorkerResumed(worker=name))
                else:
                    hand.is_alive = True
                    hand.begin(self._burst(name))
                    self._lives[name] = self._lives.get(name, 1) + 1
                    self._history.record(WorkerStarted(worker=name, life=self._lives[name]))

    def _say_stop(self) -> None:
        worker = self._listener()
        assert worker is not None
        self._said_stop.append(self._now)
        self._history.record(Commanded(command="cancel", operation=_OPERATION, worker=worker))
        self._client.cancel(who="anna", why="no longer needed", worker=worker, now=self._now)

    def _deliver(self, departure: Departure, what: str) -> None:
        """Let a webhook arrive, where somebody is there to take it, and the provider hear of it; or not."""
        attempt, worker, status = departure.attempt, self._listener(), None
        self._faults_left -= what in _AT_WEBHOOKS
        if worker is not None and what != _LOST:
            attempt.worker = worker
            status = self._client.webhook(attempt.headers, attempt.body, worker=worker, now=self._now)
        heard = None if what == _UNHEARD else status
        self._boundary.mail.arrived(departure, heard, self._now)
        if what == _TWICE:
            event, number = departure.pending.event, departure.pending.attempt
            self._boundary.mail.outbox.add(Pending(event=event, attempt=number, retried=False), self._now)

    def _arm(self, doing: Doing, mishap: str) -> None:
        kind, point = self._mishaps(doing)[mishap]
        endpoint = Endpoint(doing.endpoint) if isinstance(doing, Calling) else Endpoint.STORE
        at = Address(endpoint=endpoint, point=point, occurrence=self._counted[endpoint] + 1)
        longer = {"for_s": 1.5 * self._bounds.timing.lease_s} if kind is Stop else {}
        self._boundary.plan.arm(kind(kind=kind.name(), at=at, **longer))

    def _step(self, name: str, hand: _Hand) -> None:
        """Do what a worker is about to do, or hand it what came of it."""
        if hand.result_at is not None:
            self._go_on(name, hand, hand.result)
            return
        doing = hand.doing
        if isinstance(doing, Claiming):
            self._go_on(name, hand, self._client.claimed(name, self._now))
        elif isinstance(doing, Writing):
            self._write(name, hand, doing)
        elif isinstance(doing, Calling):
            self._call(name, hand, doing)
        else:
            self._client.left(name, doing, self._now)
            hand.begin(self._burst(name))

    def _write(self, name: str, hand: _Hand, doing: Writing) -> None:
        self._strike_store(name, doing, _P.RECEIVED)
        if not hand.is_alive:
            return
        lease = self._client.written(name, doing, self._now)
        if lease is None:
            hand.begin(self._burst(name))
            return
        self._strike_store(name, doing, _P.COMMITTED)
        self._settle(name, hand, lease)

    def _strike_store(self, name: str, doing: Writing, point: CommitPoint) -> None:
        state = doing.step.operation.state
        fate = self._boundary.store_point(worker=name, operation=_OPERATION, state=state, point=point, now=self._now)
        for effect in fate.host:
            self._affect(effect)

    def _call(self, name: str, hand: _Hand, doing: Calling) -> None:
        if not self._client.may_call(name, doing, self._now):
            hand.begin(self._burst(name))
            return
        exchange = self._boundary.exchange(doing.request, name, self._now)
        sent: Send | None = None
        try:
            effect = next(exchange)
            while True:
                if isinstance(effect, Send):
                    sent = effect
                elif isinstance(effect, KillHost | StopHost):
                    self._affect(effect)
                else:
                    raise TypeError(f"the model has no way to bring about {effect}")
                effect = exchange.send(self._now)
        except StopIteration:
            pass
        if sent is not None and sent.answer is not None and sent.fate is Fate.DELIVERED:
            self._settle(name, hand, self._client.answer(doing, sent.answer))
        elif hand.is_alive:
            hand.result, hand.result_at = (
                self._client.no_answer("timeout"),
                self._now + self._client.request_timeout_s,
            )

    def _settle(self, name: str, hand: _Hand, result: Any) -> None:
        """Hand a worker what came of its step: later if it is frozen, never if it is dead."""
        if not hand.is_alive:
            return
        if hand.resumes_at is not None:
            hand.result, hand.result_at = result, hand.resumes_at
        else:
            self._go_on(name, hand, result)

    def _go_on(self, name: str, hand: _Hand, result: Any) -> None:
        hand.result = hand.result_at = None
        try:
            hand.doing = hand.burst.send(result)
        except StopIteration:
            hand.begin(self._burst(name))

    def _affect(self, effect: HostEffect) -> None:
        hand = self._hands[effect.worker]
        if isinstance(effect, KillHost):
            hand.is_alive = False
            hand.resumes_at = self._now + _RESTART_S
            hand.result = hand.result_at = None
            self._history.record(WorkerEnded(worker=effect.worker, how="killed"))
        else:
            assert isinstance(effect, StopHost), "the model sets no clock"
            assert effect.for_s is not None, "the model freezes nobody for good"
            hand.resumes_at = self._now + effect.for_s
            self._history.record(WorkerStopped(worker=effect.worker))

    def _burst(self, name: str) -> Burst:
        return self._client.burst(name, lambda: self._now)

    def _count(self, endpoint: Endpoint, occurrence: int, _worker: str | None) -> None:
        self._counted[endpoint] = occurrence

    def _note(self, worker: str, note: Note) -> None:
        if isinstance(note, Recorded):
            self._history.record(StateRecorded(worker=worker, **msgspec.structs.asdict(note)))
        elif isinstance(note, LeaseNote):
            self._history.record(LeaseNoted(worker=worker, **msgspec.structs.asdict(note)))
