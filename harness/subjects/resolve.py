"""From the words on a command line to a subject that can be put under test."""

import importlib
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, cast

from harness.patching import PatchedFactory, marks_of
from harness.stage import SubjectError
from harness.subject import Factory
from harness.subjects.blame import blame

__all__ = ["REFERENCE", "Subject", "resolve", "subject_of"]

REFERENCE: Final = "reference"


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A client under test, and the ways it can be run."""

    name: str  # as on the command line
    factory: Factory | None = None  # simulated
    patched: PatchedFactory | None = None
    command: tuple[str, ...] | None = None  # process
    one_shot: bool = False  # the command is run once for each operation, and speaks no protocol

    @property
    def modes(self) -> tuple[str, ...]:
        """The modes this subject can run in, the quickest first."""
        ways = {"simulated": self.factory, "patched": self.patched, "process": self.command}
        return tuple(mode for mode, way in ways.items() if way)


def resolve(spec: str | None = None, command: Sequence[str] = (), *, one_shot: bool = False) -> Subject:
    """Find the subject.

    Args:
        spec: ``reference`` (the default) or ``package.module:factory``, imported with the working directory first on
            the path.
        command: a program and its arguments, for a process subject; then there is no ``spec``.
        one_shot: the command is run once for each operation.

    Raises:
        SubjectError: saying what was looked for, where, and what is there instead.
    """
    if command:
        if spec is not None:
            raise SubjectError(f"two subjects: {spec!r} and the command {' '.join(command)!r}; give one of them")
        return _from_command(command, one_shot=one_shot)
    if one_shot:
        raise SubjectError("a one-shot subject is a command: --one-shot -- COMMAND …")
    if spec is None or spec == REFERENCE:
        from harness.subjects.reference import build

        return Subject(name=REFERENCE, factory=build, command=(sys.executable, "-m", "reference_client", "subject"))
    factory = _load(spec)
    if marks_of(factory) is not None:
        return Subject(name=spec, patched=factory)
    return Subject(name=spec, factory=factory)


def subject_of(subject: str | Factory | Sequence[str], *, one_shot: bool = False) -> Subject:
    """Find the subject that a test suite names: ``package.module:factory``, a factory, or a command as a list.

    Raises:
        SubjectError: saying what it is instead.
    """
    if isinstance(subject, str):
        return resolve(subject, one_shot=one_shot)
    if callable(subject):
        name = f"{getattr(subject, '__module__', '?')}:{getattr(subject, '__qualname__', '?')}"
        if marks_of(subject) is not None:
            return Subject(name=name, patched=cast("PatchedFactory", subject))
        return Subject(name=name, factory=subject)
    if not isinstance(subject, list | tuple) or not subject or not all(isinstance(word, str) for word in subject):
        raise SubjectError(f"{subject!r} is no subject: 'package.module:factory', a factory, or a command as a list")
    return resolve(None, tuple(subject), one_shot=one_shot)


def _from_command(command: Sequence[str], *, one_shot: bool) -> Subject:
    if shutil.which(command[0]) is None:
        raise SubjectError(f"no program {command[0]!r} on the path, and no such executable file")
    return Subject(name=" ".join(command), command=tuple(command), one_shot=one_shot)


def _load(spec: str) -> Any:
    module_name, colon, attribute = spec.partition(":")
    if not colon or not module_name or not attribute:
        raise SubjectError(
            f"{spec!r} is no subject: write {REFERENCE!r}, package.module:factory, or -- COMMAND for a process"
        )
    if "/" in module_name or module_name.startswith(".") or module_name.endswith(".py"):
        likely = ".".join(part for part in Path(module_name.removesuffix(".py")).parts if part.strip("./"))
        raise SubjectError(
            f"{spec!r}: {module_name!r} is no module; it is named by its whole dotted name, seen from {Path.cwd()}"
            + (f"; did you mean '{likely.lstrip('.')}:{attribute}'?" if likely else "")
        )
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and (module_name == error.name or module_name.startswith(f"{error.name}.")):
            raise SubjectError(
                f"{spec!r}: no module {error.name!r} (looked in {here} and in what is installed)"
            ) from None
        raise SubjectError(f"{spec!r}: {module_name} needs the module {error.name!r}, which is not installed") from None
    except (Exception, SystemExit) as error:
        raise SubjectError(f"{spec!r}: importing {module_name} failed: {blame(error)}") from error
    factory = getattr(module, attribute, None)
    if factory is None:
        near = get_close_matches(attribute, vars(module), n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise SubjectError(f"{spec!r}: {module_name} has no {attribute!r}{hint}")
    if not callable(factory):
        raise SubjectError(
            f"{spec!r} is of type {type(factory).__name__}, not a factory that can be called with a host"
        )
    return factory
