"""Leads lead where they say, and there is one to every place that is asked for."""

import pytest

from fake_provider.faults import KINDS
from harness.explore.floors import BEYOND_THE_REFERENCE, expected_kinds, expected_transitions
from harness.explore.leads import EDGE_NAMES, Lead, edge, leads, leads_to_kind
from harness.history import StateRecorded
from harness.rules.local_states import EDGES, FINAL, is_legal
from harness.runner import run
from harness.subjects import resolve


def test_the_names_of_transitions_are_those_of_the_table() -> None:
    legal = {edge(before, after) for before in EDGES for after in EDGES if before != after and is_legal(before, after)}
    assert legal == EDGE_NAMES
    assert not any(name.startswith(f"{state} -> ") for state in FINAL for name in EDGE_NAMES)


def test_there_is_a_lead_to_every_transition_that_is_asked_for() -> None:
    led = {name for lead in leads() for name in lead.edges}
    assert expected_transitions({"decide", "reconcile"}) <= led <= EDGE_NAMES


@pytest.mark.parametrize("kind", sorted(expected_kinds()))
def test_there_is_a_story_with_every_fault_kind_that_is_asked_for(kind: str) -> None:
    assert kind in KINDS
    assert leads_to_kind(kind)


@pytest.mark.parametrize("lead", leads(), ids=lambda lead: ", ".join(lead.edges))
def test_a_lead_leads_the_reference_client_where_it_says(lead: Lead) -> None:
    result = run(lead.opening, resolve())
    seen = {
        edge(entry.fact.before, entry.fact.after) for entry in result.history if isinstance(entry.fact, StateRecorded)
    }
    assert set(lead.edges) - seen <= BEYOND_THE_REFERENCE.keys()
    assert result.outcome.findings == ()
