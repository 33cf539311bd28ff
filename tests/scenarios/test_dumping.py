"""A scenario written out is what a person would have written, and reads back equal."""

import json
from textwrap import dedent

import hypothesis.strategies as st
import pytest
from hypothesis import example, given
from pydantic import JsonValue

from fake_provider.addresses import Address
from fake_provider.contract import Contract, Idempotency, Mechanism
from fake_provider.faults.host import Kill, Stop
from fake_provider.work import Work
from scenarios.dumping import dump
from scenarios.loading import load_catalogue, parse
from scenarios.model import Arm, Cancel, Heal, Scenario, Submit, Timing


@pytest.mark.parametrize("name", sorted(load_catalogue()))
def test_every_story_of_the_catalogue_reads_back_equal(name: str) -> None:
    scenario = load_catalogue()[name]
    assert parse(dump(scenario)) == scenario


def test_whole_numbers_are_written_as_such_wherever_a_model_has_them() -> None:
    contract = Contract.model_validate({"cancel": {"takes_s": 30.0}, "idempotency": {"key_lifetime_s": 2.5}})
    text = dump(Scenario(name="slow", summary="A cancel takes its time.", contract=contract, steps=(Heal(at=2),)))
    assert "takes_s: 30\n" in text
    assert "key_lifetime_s: 2.5\n" in text


def test_defaults_are_left_out_and_each_step_is_a_line() -> None:
    scenario = Scenario(
        name="shrunk-1",
        summary="Found by exploring: twice the same.",
        requirements=("W2.2",),
        contract=Contract(idempotency=Idempotency(mechanism=Mechanism.NONE)),
        timing=Timing(lease_s=3),
        work={"op-1": Work(takes_s=1.25)},
        steps=(
            Submit(at=0, operation="op-1", parameters={"n": 1.0, "list": [1, {"deep": None}], "text": "yes: #1"}),
            Arm(at=0.5, fault=Stop(at=Address.parse("status#*:received@w1"), for_s=2)),
            Cancel(at=1, operation="op-1"),
            Heal(at=2),
        ),
        faults=(Kill(at=Address.parse("create#2:committed")),),
        ends={"op-1": ("succeeded", "cancelled")},
        jobs={"op-1": 1},
        seed=7,
    )
    text = dump(scenario)
    assert text == dedent(
        """\
        name: shrunk-1
        summary: 'Found by exploring: twice the same.'
        requirements: [W2.2]
        contract:
          idempotency:
            mechanism: none
        timing: {lease_s: 3}
        work:
          op-1: {takes_s: 1.25}
        steps:
          - {at: 0, do: submit, operation: op-1, parameters: {n: 1.0, list: [1, {deep: null}], text: 'yes: #1'}}
          - {at: 0.5, do: arm, fault: {kind: stop, at: status#*:received@w1, for_s: 2}}
          - {at: 1, do: cancel, operation: op-1}
          - {at: 2, do: heal}
        faults:
          - {kind: kill, at: create#2:committed}
        ends:
          op-1: [succeeded, cancelled]
        jobs:
          op-1: 1
        seed: 7
        """
    )
    assert parse(text) == scenario


def json_values() -> st.SearchStrategy[JsonValue]:
    """Anything JSON can say, and above all what YAML would read as something else."""
    tricky = st.sampled_from(
        [
            "yes",
            "null",
            "~",
            "1e3",
            "0x1f",
            "0o7",
            "1_000",
            "2024-03-01",
            ".inf",
            "=",
            "<<",
            "- a",
            "a: b",
            "#",
            "*a",
            " x ",
        ]
    )
    leaves = (
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(st.characters(exclude_categories=["Cs"]))
        | tricky
    )
    return st.recursive(
        leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text() | tricky, inner, max_size=3)
    )


@given(st.dictionaries(st.text(max_size=5), json_values(), max_size=3))
@example({"\x07": "\x85", "\ufeff": "\u2028"})
def test_parameters_read_back_whatever_they_hold(parameters: dict[str, JsonValue]) -> None:
    scenario = Scenario(name="a", summary="b", steps=(Submit(at=0, operation="op-1", parameters=parameters),))
    (step,) = parse(dump(scenario)).steps
    assert isinstance(step, Submit)
    assert json.dumps(step.parameters, sort_keys=True) == json.dumps(parameters, sort_keys=True)


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_a_summary_reads_back_whatever_it_holds(summary: str) -> None:
    scenario = Scenario(name="a", summary=summary, steps=(Submit(at=0, operation="op-1"),))
    assert parse(dump(scenario)).summary == summary
