"""The pages and schemas in ``docs`` that are made from the code.

``python -m harness.report.catalogues`` writes them; a test compares them with what it would write.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from enum import StrEnum
from inspect import cleandoc
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel
from pydantic.fields import FieldInfo

import harness.rules  # noqa: F401  enters every rule in the book
from fake_provider.contract import Contract
from fake_provider.faults import FAMILIES, Fault
from fake_provider.faults import KINDS as FAULTS
from fake_provider.work import Work
from harness.report.listings import listing
from harness.report.machine import schema
from harness.rules.registry import all_rules
from harness.subjects import lines
from scenarios.loading import CATALOGUE
from scenarios.model import Scenario, Timing
from scenarios.shapes import members

__all__ = ["pages", "write"]

_DOCS: Final = Path(__file__).parents[2] / "docs"
_GENERATED: Final = "<!-- Written by `python -m harness.report.catalogues`; do not edit. -->"

_RULES_INTRO: Final = """\
A rule is one requirement, judged from the history of a run alone. *Needs* says what a rule must be able to see:
`wire` is always there; `report` are the client's claims; `history` is what the client notes of its own records.
What cannot be seen is reported as not judged, never as passed."""

_FAULTS_INTRO: Final = """\
A fault strikes at an address: endpoint, occurrence, commit point, and optionally an operation or a worker, for
example `create#1:committed` or `status#3:delivered@op-2`; `store[accepted]#1:committed` is the client's own durable
write. An exchange passes its commit points in this order: `before_receipt`, `received` (read, nothing done),
`committed` (the effect applied, no answer sent), `answering` (partly sent), `delivered`. Every fault takes `times`:
how many occurrences in a row from the addressed one, or `until_healed`."""

_SCENARIOS_INTRO: Final = """\
The stories that come along. Run one with `jobsworth replay NAME`, all with `jobsworth check`. The form of a
scenario file is in [`scenario.schema.json`](scenario.schema.json)."""

_WRITING_INTRO: Final = """\
A scenario is one YAML file, named as the scenario is. What is left out has a default. Everything in it is checked
before a run: a mistake is answered with its line, the valid keys, and the likeliest one."""

_STEPS_INTRO: Final = """\
Each has `at`, in seconds from the start, and stands after those before it. A worker or operation is named where there
is one to name."""

_EXAMPLE: Final = "stale-lease"


def pages() -> dict[str, str]:
    """Return the content of every generated file in ``docs``, by file name."""
    return {
        "rules.md": _rules_page(),
        "faults.md": _faults_page(),
        "scenarios.md": _scenarios_page(),
        "dialects.md": _dialects_page(),
        "scenario.schema.json": _json(
            {"$schema": "https://json-schema.org/draft/2020-12/schema", **Scenario.model_json_schema()}
        ),
        "report.schema.json": _json(schema()),
        "subject-protocol.schema.json": _json(lines.schema()),
    }


def write(folder: Path = _DOCS) -> None:
    """Write :func:`pages`."""
    for name, content in pages().items():
        (folder / name).write_text(content, encoding="utf-8", newline="\n")


def _rules_page() -> str:
    parts = [
        _GENERATED,
        "# Rules",
        _RULES_INTRO,
        _table(
            ("rule", "requirement", "needs", "what must hold"),
            [(f"[`{rule.id}`](#{rule.id})", rule.requirement, rule.needs, rule.summary) for rule in all_rules()],
        ),
    ]
    parts += [f"## {rule.id}\n\n{rule.requirement} · needs {rule.needs}\n\n{rule.doc}" for rule in all_rules()]
    return _page(parts)


def _faults_page() -> str:
    parts = [
        _GENERATED,
        "# Faults",
        _FAULTS_INTRO,
    ]
    for family in FAMILIES:
        own = {name: kind for name, kind in FAULTS.items() if kind.__module__ == family.__name__}
        intro = (family.__doc__ or "").strip()
        rows = [(f"`{name}`", kind.summary(), _parameters(kind), _places(kind)) for name, kind in own.items()]
        title = family.__name__.rpartition(".")[2].capitalize().replace("Http", "HTTP")
        parts += [f"## {title}", intro, _table(("kind", "what happens", "parameters", "can strike at"), rows)]
    return _page(parts)


def _parameters(kind: type[Fault]) -> str:
    """What can be set of a kind, with what it is otherwise."""
    own = {name: field for name, field in kind.model_fields.items() if name not in {"kind", "at", "times"}}
    defaults = {name: "…" if field.is_required() else json.dumps(field.default) for name, field in own.items()}
    return "<br>".join(f"`{name}: {default}`" for name, default in defaults.items())


def _places(kind: type[Fault]) -> str:
    """Where a kind can strike, endpoints with the same commit points together."""
    by_points: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for endpoint, points in kind.strikes_at.items():
        by_points[tuple(points)].append(endpoint)
    return "<br>".join(f"{', '.join(endpoints)}: {', '.join(points)}" for points, endpoints in by_points.items())


def _scenarios_page() -> str:
    items = listing("scenarios")
    rows = [
        (
            f"[`{item['id']}`](../scenarios/catalogue/{item['id']}.yaml)",
            item["summary"],
            ", ".join(item["requirements"]),
            "<br>".join(f"`{fault}`" for fault in item["faults"]) or "none",
        )
        for item in items
    ]
    return _page(
        [
            _GENERATED,
            "# Scenarios",
            _SCENARIOS_INTRO,
            _table(("scenario", "what happens", "requirements", "faults"), rows),
            *_scenario_format(),
        ]
    )


def _scenario_format() -> list[str]:
    """How a scenario file is written, from the models that read it."""
    steps = [
        (
            f"`{member.model_fields['do'].default}`",
            cleandoc(member.__doc__ or "").splitlines()[0],
            ", ".join(f"`{name}`" for name in member.model_fields if name not in {"at", "do"}),
        )
        for member in members(Scenario, "steps")
    ]
    return [
        "## Writing one",
        _WRITING_INTRO,
        f"```yaml\n{(CATALOGUE / f'{_EXAMPLE}.yaml').read_text(encoding='utf-8').rstrip()}\n```",
        "### Keys",
        _keys(Scenario),
        "### Steps",
        _STEPS_INTRO,
        _table(("do", "what happens", "takes"), steps),
        "### `timing`",
        _keys(Timing),
        "### `work`, for each operation or `default`",
        _keys(Work),
    ]


def _keys(model: type[BaseModel]) -> str:
    """A table of a model's keys, what each is if left out, and what it means."""
    rows = [(f"`{name}`", _otherwise(field), field.description or "") for name, field in model.model_fields.items()]
    return _table(("key", "if left out", "meaning"), rows)


def _otherwise(field: FieldInfo) -> str:
    if field.is_required():
        return "must be there"
    default = field.get_default(call_default_factory=True)
    if default in ((), {}, None):
        return "none"
    if isinstance(default, float) and default.is_integer():
        default = int(default)
    return f"`{json.dumps(default)}`" if isinstance(default, str | int | float | tuple) else "its own defaults"


def _dialects_page() -> str:
    rows = [(f"`{item['id']}`", item["summary"]) for item in listing("dialects")]
    contracts = [(f"`{item['id']}`", item["summary"]) for item in listing("contracts")]
    return _page(
        [
            _GENERATED,
            "# Dialects and contracts",
            "A dialect is how one provider writes its contract on the wire.",
            _table(("dialect", "what it is"), rows),
            "## Contracts",
            "A contract is what a provider promises. A scenario names one of these, or spells out its own.",
            _table(("contract", "what it promises"), contracts),
            "### Keys",
            _table(("key", "if left out", "what it can be"), list(_contract_keys(Contract))),
        ]
    )


def _contract_keys(model: type[BaseModel], above: str = "") -> Iterator[tuple[str, str, str]]:
    """Every promise: its key, what it is if left out, and the choice or the meaning."""
    for key, field in model.model_fields.items():
        default = field.get_default()
        if isinstance(default, BaseModel):
            yield from _contract_keys(type(default), f"{above}{key}.")
        else:
            values = ", ".join(f"`{value}`" for value in type(default)) if isinstance(default, StrEnum) else ""
            yield f"`{above}{key}`", _otherwise(field), values or field.description or ""


def _table(heading: tuple[str, ...], rows: Sequence[tuple[object, ...]]) -> str:
    lines = [heading, tuple("---" for _ in heading), *rows]
    return "\n".join(f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def _page(parts: list[str]) -> str:
    return "\n\n".join(parts) + "\n"


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    write()
