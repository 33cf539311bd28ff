"""The wire formats, one module each. A module of this package that holds a ``DIALECT`` is one: nothing else has to be
told of it.
"""

import importlib
import pkgutil
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from fake_provider.dialects.seam import Dialect

__all__ = ["DIALECTS", "Dialect"]


def _found() -> dict[str, Dialect]:
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    modules = [importlib.import_module(f"{__name__}.{name}") for name in names]
    return {module.DIALECT.name: module.DIALECT for module in modules if hasattr(module, "DIALECT")}


DIALECTS: Final[Mapping[str, Dialect]] = MappingProxyType(_found())
"""All dialects by name."""
