"""A scenario as YAML that a person would have written: defaults left out, one step and one fault a line."""

import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final

from pydantic import BaseModel
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.scalarstring import DoubleQuotedScalarString

from fake_provider.presets import PRESETS
from scenarios.model import Arm, Scenario

__all__ = ["dump", "write"]

_WIDTH: Final = 10_000  # a step stays on one line, however long
_ORDINARY: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_ .,;/@#*:()'\[\]-]*")
"""Text for which the dumper's own quoting can be trusted; it loses line separators, and keys that begin with a colon.
"""

_TAGS: Final = ("do", "kind")  # says which member of a union it is, so it is written though it is a default


def dump(scenario: Scenario) -> str:
    """Return the YAML of ``scenario``."""
    document = CommentedMap()
    for name, field in Scenario.model_fields.items():
        value = getattr(scenario, name)
        if field.is_required() or value != field.get_default(call_default_factory=True):
            document[name] = _block(name, value)
    stream = io.StringIO()
    yaml = YAML(typ="rt")
    yaml.width = _WIDTH
    yaml.brace_single_entry_mapping_in_flow_sequence = True
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.dump(document, stream)
    return stream.getvalue()


def write(scenario: Scenario, folder: Path) -> Path:
    """Write ``scenario`` into a file of its name in ``folder``, which is made if absent; return the file.

    What was searched for long is not lost with the place it was to go to: if nothing can be written there, it goes to a
    new folder among the temporary files.

    Raises:
        OSError: nothing can be written anywhere.
    """
    text = dump(scenario)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return _written(text, folder / f"{scenario.name}.yaml")
    except OSError:
        return _written(text, Path(mkdtemp(prefix="jobsworth-")) / f"{scenario.name}.yaml")


def _written(text: str, path: Path) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def _block(name: str, value: Any) -> Any:
    match name:
        case "steps" | "faults":
            return CommentedSeq(_flow(_told(part)) for part in value)
        case "work" | "ends":
            return CommentedMap((operation, _flow(_told(part))) for operation, part in value.items())
        case "contract":
            return value.name if PRESETS.get(value.name) == value else _short_throughout(_told(value))
        case "jobs":
            return value
        case _:
            return _flow(_told(value))


def _told(value: Any) -> Any:
    """``value`` as JSON, without what goes without saying."""
    if isinstance(value, tuple):
        return list(value)
    if not isinstance(value, BaseModel):
        return _short(value)
    told: dict[str, Any] = value.model_dump(mode="json", exclude_defaults=True)
    if isinstance(value, Arm):
        told["fault"] = _told(value.fault)
    tags = {tag: getattr(value, tag) for tag in _TAGS if tag in type(value).model_fields}
    told = {key: _short(inner) for key, inner in told.items()}
    first = {"at": told.pop("at")} if "at" in told and "do" in tags else {}
    return {**first, **tags, **told}


def _short(value: Any) -> Any:
    """``2`` for ``2.0``. Only of a model's own numbers: what stands in free JSON is the author's."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _short_throughout(value: Any) -> Any:
    """The same in all parts of a contract, which has no numbers but its own."""
    if isinstance(value, dict):
        return {key: _short_throughout(inner) for key, inner in value.items()}
    return [_short(each) for each in value] if isinstance(value, list) else _short(value)


def _flow(value: Any) -> Any:
    """``value`` to be written on one line."""
    match value:
        case Mapping():
            mapping = CommentedMap((_flow(key), _flow(inner)) for key, inner in value.items())
            mapping.fa.set_flow_style()
            return mapping
        case str():
            return value if _ORDINARY.fullmatch(value) else DoubleQuotedScalarString(value)
        case Sequence():
            sequence = CommentedSeq(map(_flow, value))
            sequence.fa.set_flow_style()
            return sequence
        case _:
            return value
