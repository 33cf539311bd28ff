"""The wire formats, one file each. Adding one touches its own file and the table here."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from fake_provider.dialects.jobs import JobsDialect
from fake_provider.dialects.seam import Dialect

__all__ = ["DIALECTS", "Dialect"]

_ALL: Final[tuple[Dialect, ...]] = (JobsDialect(),)

DIALECTS: Final[Mapping[str, Dialect]] = MappingProxyType({one.name: one for one in _ALL})
"""All dialects by name."""
