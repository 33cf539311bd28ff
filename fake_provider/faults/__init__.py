"""Everything that can be made to go wrong: commit points, kinds of faults, and the plan that holds them.

Each kind is one class in the module of its family; ``KINDS`` is the registry, ``AnyFault`` the type scenarios read.
"""

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, TypeAlias

from pydantic import Field

from fake_provider.faults import cancelling, host, http, network, results, untruths, webhooks
from fake_provider.faults.course import Course
from fake_provider.faults.kinds import KINDS, UNTIL_HEALED, Fault, fault_kind
from fake_provider.faults.plan import FaultPlan

__all__ = ["FAMILIES", "KINDS", "UNTIL_HEALED", "AnyFault", "Course", "Fault", "FaultPlan", "fault_kind"]

FAMILIES = (network, http, untruths, cancelling, results, webhooks, host)
"""The modules of kinds, in the order in which they are listed."""

if TYPE_CHECKING:
    AnyFault: TypeAlias = Fault
else:
    AnyFault = Annotated[reduce(or_, KINDS.values()), Field(discriminator="kind")]
