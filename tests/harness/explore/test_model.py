"""The reference client's decisions, in every order that two workers and two faults allow."""

from hashlib import sha256

import msgspec
import pytest

from fake_provider.contract import Contract, Idempotency, Lookup, LookupBy, Mechanism, Result, ResultKind
from fake_provider.wire import Request
from harness.explore.model import Bounds, explore_all
from harness.subjects.pure import PureReference
from reference_client.operation import Operation

INLINE = Result(kind=ResultKind.INLINE)


@pytest.mark.parametrize(("faults", "states"), [(0, 14), (1, 272), (2, 2349)])
def test_every_state_is_visited_and_no_rule_breaks_in_any(faults: int, states: int) -> None:
    found = explore_all(Bounds(faults=faults))
    print(f"{faults} faults: {found.states} states, {found.steps} steps, {found.ends} ends")  # noqa: T201  asked for
    assert found.findings == ()
    assert found.states == states  # another number means another client or another provider: look at what changed
    assert found.ends > faults * 10
    assert len(found.judged) > 30
    assert {"one-job-per-operation", "stale-worker-does-nothing"} & found.judged


def test_a_provider_that_keeps_no_tokens_and_finds_nothing_is_explored_as_well() -> None:
    careless = Contract(
        idempotency=Idempotency(mechanism=Mechanism.NONE, required=False),
        lookup=Lookup(by=LookupBy.NONE, authoritative=False),
        result=INLINE,
    )
    assert explore_all(Bounds(faults=1, contract=careless)).findings == ()


class NewTokenPerCall(PureReference):
    """Mints a token for each call, so that a create that is sent again is another create."""

    def request(self, operation: Operation) -> Request:
        asked = super().request(operation)
        token = f'"{sha256(str(operation.calls).encode()).hexdigest()}"'
        return msgspec.structs.replace(asked, headers={**asked.headers, "idempotency-key": token})


def test_a_client_that_lacks_a_safeguard_is_caught_and_the_path_tells_how() -> None:
    found = explore_all(Bounds(faults=1), client=NewTokenPerCall)
    broken = {finding.rule: path for finding, path in found.findings}
    assert "one-job-per-operation" in broken
    assert any(": " in choice for choice in broken["one-job-per-operation"])  # a mishap was needed
