"""A JSON Schema that results must meet, where a provider or its users publish one (W7.2). Pure.

Needs the package ``jsonschema`` (the extra ``schema``), which is asked for only when a schema is given.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

import msgspec

from reference_client.config import ConfigError

__all__ = ["ResultSchema"]

_LISTED_PROBLEMS: Final = 20
"""Enough to see the pattern; a result of a million bad records has no more patterns than that."""

_PATH_LIMIT: Final = 120


class ResultSchema:
    """One schema, checked itself when it is given.

    Raises:
        ConfigError: if it is no JSON Schema, or ``jsonschema`` is not installed.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        try:
            jsonschema: Any = import_module("jsonschema")
        except ImportError:
            raise ConfigError("a result schema needs the package jsonschema; install the extra `schema`") from None
        kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
        try:
            kind.check_schema(schema)
        except jsonschema.SchemaError as error:
            raise ConfigError(f"result schema: {error.message} (at {error.json_path})") from None
        self._validator = kind(schema, format_checker=kind.FORMAT_CHECKER)

    def problems(self, body: bytes) -> tuple[str, ...]:
        """Return where a result breaks the schema and by which keyword. What stands there is not repeated (W8.3)."""
        try:
            value = msgspec.json.decode(body)
        except (msgspec.DecodeError, RecursionError):
            return ("the result is no JSON",)
        found: list[str] = []
        for error in self._validator.iter_errors(value):
            found.append(f"schema: {error.json_path[:_PATH_LIMIT]} breaks {error.validator!r}")
            if len(found) == _LISTED_PROBLEMS:
                break
        return tuple(found)
