"""The rule book: one module for each section of requirements. Importing this package enters every rule."""

from harness.rules import (
    cancelling,
    collecting,
    consequences,
    creating,
    delivery,
    giving_up,
    liveness,
    manners,
    observing,
    people,
    reconciling,
    records,
    scheduling,
    transitions,
    webhooks,
)

__all__ = [
    "cancelling",
    "collecting",
    "consequences",
    "creating",
    "delivery",
    "giving_up",
    "liveness",
    "manners",
    "observing",
    "people",
    "reconciling",
    "records",
    "scheduling",
    "transitions",
    "webhooks",
]
