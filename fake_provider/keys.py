"""Which idempotency keys the provider has seen, and what it does when one comes again."""

from collections.abc import Callable
from hashlib import sha256

from fake_provider.calls import Create, JobView, Problem, Refused
from fake_provider.contract import Idempotency, InFlight, Mechanism, OtherBody

__all__ = ["Gate", "Key", "KeyBook", "Ticket"]


class Gate:
    """Something several exchanges wait for. Opens once and stays open."""

    __slots__ = ("_waiting", "is_open")

    def __init__(self) -> None:
        self.is_open = False
        self._waiting: list[Callable[[], object]] = []

    def when_open(self, callback: Callable[[], object]) -> None:
        """Call ``callback`` once, at once if the gate is open already."""
        if self.is_open:
            callback()
        else:
            self._waiting.append(callback)

    def open(self) -> None:
        self.is_open = True
        waiting, self._waiting = self._waiting, []
        for callback in waiting:
            callback()


class Key:
    """One key: the request it came with first, and, once that was carried out, the job as first told."""

    __slots__ = ("canonical", "expires_at", "gate", "view")

    def __init__(self, canonical: bytes, expires_at: float) -> None:
        self.canonical = canonical
        self.expires_at = expires_at
        self.gate = Gate()
        self.view: JobView | None = None

    def commit(self, view: JobView) -> None:
        """The job exists: whoever comes with this key from now on is told ``view``."""
        self.view = view
        self.gate.open()


class Ticket:
    """What the book said to one create."""

    __slots__ = ("gate", "key", "owned", "refused")

    def __init__(
        self, *, key: Key | None = None, owned: bool = False, refused: Refused | None = None, gate: Gate | None = None
    ) -> None:
        self.key = key  # None: nothing recognises this create
        self.owned = owned  # this create came first
        self.refused = refused  # the answer, unless a fault lets it pass
        self.gate = gate  # wait for it, then ask again


_Scoped = tuple[str, str, bytes]


class KeyBook:
    """All keys, each within its credential's scope."""

    def __init__(self, promised: Idempotency) -> None:
        self._promised = promised
        self._keys: dict[_Scoped, Key] = {}

    def _name(self, call: Create) -> _Scoped | None:
        if self._promised.mechanism is Mechanism.NONE or call.token is None:
            return None
        # Where another body makes another job, key and body together are what is recognised.
        body = call.canonical if self._promised.other_body is OtherBody.CREATE_NEW else b""
        return call.scope, call.token, body

    def reserve(self, call: Create, now: float) -> Ticket:
        """Claim the call's key, or say what stands in the way.

        A mismatch of bodies is noticed before a conflict with a request in flight (IETF Idempotency-Key draft).
        """
        name = self._name(call)
        if name is None:
            return Ticket()
        key = self._keys.get(name)
        if key is None or (now >= key.expires_at and key.view is not None):
            key = self._keys[name] = Key(call.canonical, now + self._promised.key_lifetime_s)
            return Ticket(key=key, owned=True)
        if key.canonical != call.canonical and self._promised.other_body is OtherBody.REJECT_422:
            detail = "this idempotency key was used with another request"
            return Ticket(key=key, refused=Refused(problem=Problem.KEY_REUSED, detail=detail))
        if key.view is None:
            if self._promised.in_flight is InFlight.CONFLICT_409:
                detail = "the first request with this idempotency key is still being worked on"
                return Ticket(refused=Refused(problem=Problem.IN_PROGRESS, detail=detail))
            if self._promised.in_flight is InFlight.WAIT:
                return Ticket(gate=key.gate)
        return Ticket(key=key)

    def release(self, call: Create, ticket: Ticket) -> None:
        """Give up a key that was claimed and came to nothing."""
        if ticket.owned and ticket.key is not None and ticket.key.view is None:
            name = self._name(call)
            if name is not None and self._keys.get(name) is ticket.key:
                del self._keys[name]
            ticket.key.gate.open()

    def remembers(self, call: Create) -> bool:
        """Whether the call's key is known, and what was answered to it."""
        name = self._name(call)
        key = self._keys.get(name) if name is not None else None
        return key is not None and key.view is not None

    def forget(self, call: Create) -> None:
        """Lose the call's key before its time, which breaks the promise."""
        name = self._name(call)
        if name is not None:
            self._keys.pop(name, None)

    def outlook(self, now: float) -> tuple[object, dict[str, float]]:
        """Return what the book will go by, and when each key ends, in seconds from now. See ``Provider.outlook``."""
        keys = [
            (token, sha256(key.canonical).hexdigest(), key.view and (key.view.id, key.view.state), key.expires_at > now)
            for (_, token, _), key in self._keys.items()
        ]
        ends = {
            f"key {number}": key.expires_at - now
            for number, key in enumerate(self._keys.values())
            if key.expires_at > now
        }
        return keys, ends

    def fingerprint(self) -> list[tuple[str, bytes, float, str | None]]:
        """Return what the book will go by: each key with its body, its lifetime and the state it was first told of."""
        return [
            (token, key.canonical, key.expires_at, str(key.view.state) if key.view is not None else None)
            for (_, token, _), key in self._keys.items()
        ]
