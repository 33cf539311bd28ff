"""What rules have in common that judge a local state as it is reached, by the client's history or by its word."""

from collections.abc import Iterator

from harness.history import Claimed, Entry, StateRecorded
from harness.rules.registry import Rule
from harness.rules.views import Operation
from harness.verdict import Finding

__all__ = ["StateReached"]


class StateReached(Rule):
    """Common to rules on what must be so when an operation is recorded or claimed to be in one of the states of
    ``reaching``.
    """

    def on_recorded(self, entry: Entry, fact: StateRecorded) -> Iterator[Finding]:
        if fact.before != fact.after:
            operation = self.world.operation(fact.operation)
            yield from self.judge_state(entry, operation, f"{fact.worker} recorded", fact.remote_job)

    def on_claimed(self, entry: Entry, fact: Claimed) -> Iterator[Finding]:
        operation = self.world.operation(fact.operation)
        yield from self.judge_state(entry, operation, f"{fact.worker} claims", fact.remote_job)

    def judge_state(
        self, entry: Entry, operation: Operation, said: str, remote_job: str | None, /
    ) -> Iterator[Finding]:
        """Judge the state.

        Args:
            entry: in which it is recorded or claimed.
            said: who did that, such as "w1 claims".
            remote_job: the job that is named with it.
        """
        raise NotImplementedError
