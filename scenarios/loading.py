"""Scenario files: from YAML to a :class:`~scenarios.model.Scenario`, or to every problem in the file with its line.

A file's errors come in two rounds, each of them whole: first what has the wrong shape (YAML, keys, values), then what
is well-formed and cannot be meant (a worker that does not exist, times that go backwards). The second round needs the
first to be clean.
"""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from fake_provider.contract import Contract
from fake_provider.presets import UnknownPreset, preset
from scenarios.model import Scenario
from scenarios.shapes import model_at, without_tags

__all__ = ["CATALOGUE", "Problem", "ScenarioError", "find", "find_contract", "load", "load_catalogue", "parse"]

CATALOGUE: Final = Path(__file__).parent / "catalogue"
_SUFFIX: Final = ".yaml"
_PLAIN_WORDS: Final = {"tuple": "list", "valid dictionary": "mapping"}  # for pydantic's own, which are Python's
_Model = TypeVar("_Model", bound=BaseModel)


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One thing wrong with a scenario file. ``line`` counts from 1; None where the file as a whole is meant."""

    source: str
    line: int | None
    key: str  # where in the document: "steps[0].operation"; "" for the document
    message: str

    def __str__(self) -> str:
        place = self.source if self.line is None else f"{self.source}:{self.line}"
        return f"{place}: {self.key}: {self.message}" if self.key else f"{place}: {self.message}"


class ScenarioError(ValueError):
    """A scenario that cannot be used: the author's mistake. The message has one line for each problem."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = tuple(problems)


def load(path: Path | str) -> Scenario:
    """Read one file.

    Raises:
        ScenarioError: with every problem of the file.
    """
    path = Path(path)
    text = _read(path)
    scenario = parse(text, source=str(path))
    if scenario.name != path.stem:
        line = _line(_document(text, str(path)), ("name",))
        raise _single(str(path), f"{scenario.name!r} is not the file's name, {path.stem!r}", line=line, key="name")
    return scenario


def parse(text: str, *, source: str = "scenario") -> Scenario:
    """Read a scenario from YAML text.

    Args:
        text: the document.
        source: what to call it in errors.

    Raises:
        ScenarioError: with every problem of the document.
    """
    return _parse(text, source, Scenario)


@cache
def load_catalogue() -> Mapping[str, Scenario]:
    """The curated stories that come with the package, by name, in alphabetical order."""
    return MappingProxyType({path.stem: load(path) for path in sorted(CATALOGUE.glob(f"*{_SUFFIX}"))})


def find(name: str) -> Scenario:
    """Return the scenario of that name from the catalogue, or from the file if ``name`` is a path.

    Raises:
        ScenarioError: if there is none, naming the closest ones, or if the file is no scenario.
    """
    if _is_path(name):
        return load(name)
    path = CATALOGUE / f"{name}{_SUFFIX}"
    names = sorted(found.stem for found in CATALOGUE.glob(f"*{_SUFFIX}"))
    if name not in names:
        raise _single(
            name,
            f"no such scenario{_did_you_mean(name, names)}; there are {', '.join(names)}; a file ends in {_SUFFIX}",
        )
    return load(path)


def find_contract(name: str) -> Contract:
    """Return the preset of that name, or the contract in the file if ``name`` is a path.

    Raises:
        ScenarioError: if there is none, naming the closest one, or if the file is no contract.
    """
    if _is_path(name):
        return _parse(_read(Path(name)), name, Contract)
    try:
        return preset(name)
    except UnknownPreset as error:
        raise _single(name, str(error)) from None


def _is_path(name: str) -> bool:
    return name.endswith((_SUFFIX, ".yml")) or "/" in name or "\\" in name


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise _single(str(path), error.strerror or str(error)) from None
    except UnicodeDecodeError as error:
        raise _single(str(path), f"is not UTF-8 text: {error.reason} at byte {error.start}") from None


def _parse(text: str, source: str, model: type[_Model]) -> _Model:
    document = _document(text, source)
    if not isinstance(document, CommentedMap):
        raise _single(
            source, f"a {model.__name__.lower()} is a mapping with keys of {', '.join(model.model_fields)}", line=1
        )
    try:
        return model.model_validate(_plain(document))
    except ValidationError as invalid:
        errors = invalid.errors(include_url=False)
        # A list whose every item is wrong is reported as empty, too: that would only repeat the items' own errors.
        places = {error["loc"][:length] for error in errors for length in range(len(error["loc"]))}
        told = [error for error in errors if error["loc"] not in places]
        problems = [_problem(document, source, model, error) for error in told]
    raise ScenarioError(sorted(problems, key=lambda problem: problem.line or 0))


def _single(source: str, message: str, *, line: int | None = None, key: str = "") -> ScenarioError:
    return ScenarioError([Problem(source=source, line=line, key=key, message=message)])


def _document(text: str, source: str) -> Any:
    """Parse YAML with the line of every key kept."""
    try:
        return YAML(typ="rt").load(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = None if mark is None else mark.line + 1
        raise _single(source, f"not YAML: {error.problem or error.context}", line=line) from None
    except RecursionError:
        raise _single(source, "not YAML for people: nested too deeply") from None
    except (YAMLError, ValueError) as error:  # ValueError: a number or date that is none
        raise _single(source, f"not YAML: {str(error).splitlines()[0]}") from None


def _plain(node: Any) -> Any:
    """``node`` as dicts, lists and scalars; the loader's own types carry marks that a model must not keep."""
    match node:
        case CommentedMap():
            return {str(key): _plain(value) for key, value in node.items()}
        case CommentedSeq():
            return [_plain(value) for value in node]
        case bool() | None:
            return node
        case int():
            return int(node)
        case float():
            return float(node)
        case str():
            return str(node)
        case _:
            return node


def _problem(document: CommentedMap, source: str, model: type[BaseModel], error: ErrorDetails) -> Problem:
    where = without_tags(document, error["loc"])
    return Problem(
        source=source,
        line=_line(document, where),
        key=_spelled(where),
        message=_message(model, error),
    )


def _line(document: Any, where: Sequence[str | int]) -> int:
    """The line of the deepest part of ``where`` that stands in the document."""
    line = document.lc.line + 1
    node = document
    for part in where:
        try:
            if isinstance(node, CommentedMap):
                line = node.lc.key(part)[0] + 1
            elif isinstance(node, CommentedSeq):
                line = node.lc.item(part)[0] + 1
            else:
                break
            node = node[part]
        except (KeyError, IndexError, TypeError):
            break
    return int(line)


def _spelled(where: Sequence[str | int]) -> str:
    text = ""
    for part in where:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _message(model: type[BaseModel], error: ErrorDetails) -> str:
    kind, where = error["type"], error["loc"]
    owner = model_at(model, where[:-1])
    valid = [] if owner is None else list(owner.model_fields)
    match kind:
        case "extra_forbidden":
            return f"unknown key{_did_you_mean(str(where[-1]), valid)}; valid keys: {', '.join(valid)}"
        case "missing":
            return f"missing key; valid keys: {', '.join(valid)}"
        case "union_tag_invalid":
            context = error["ctx"]
            expected = [tag.strip().strip("'") for tag in str(context["expected_tags"]).split(",")]
            found, key = str(context["tag"]), str(context["discriminator"]).strip("'")
            return f"{key}: {found!r} is none{_did_you_mean(found, expected)}; one of {', '.join(expected)}"
        case "union_tag_not_found":
            return f"the key {error['ctx']['discriminator']} is missing"
        case "literal_error" | "enum":
            return f"found {error['input']!r}{_did_you_mean_expected(error)}; expected {error['ctx']['expected']}"
        case "meaning":
            return error["msg"]
        case "value_error":
            return str(error["ctx"]["error"])
        case _:
            said = f"{error['msg'][0].lower()}{error['msg'][1:]}"
            for word, plain in _PLAIN_WORDS.items():
                said = said.replace(word, plain)
            return f"found {_shown(error['input'])}; {said}"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _did_you_mean_expected(error: ErrorDetails) -> str:
    expected = str(error["ctx"]["expected"]).replace(" or ", ", ").split(", ")
    return _did_you_mean(str(error["input"]), [text.strip("'") for text in expected])


def _did_you_mean(found: str, valid: Sequence[str]) -> str:
    close = difflib.get_close_matches(found, valid, n=1)
    return f", did you mean {close[0]!r}?" if close else ""
