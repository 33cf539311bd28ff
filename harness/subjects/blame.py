"""What a client's own code raised, in one line for its author: which error, and at which line of the client."""

import inspect
import sysconfig
from pathlib import Path
from typing import Final

__all__ = ["blame", "not_a_client"]

_OURS: Final = tuple(f"{Path(__file__).parents[2] / room}/" for room in ("harness", "fake_provider", "scenarios"))
_LIBRARIES: Final = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})


def blame(error: BaseException) -> str:
    """Return the error and where in the client it came about: its last line that is neither ours nor a library's.

    Only the file's name is told, so that a run's history is the same wherever the client's code lies.
    """
    where = ""
    trace = error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not file.startswith(("<", *_OURS, *_LIBRARIES)):
            where = f" at {Path(file).name}:{trace.tb_lineno}"
        trace = trace.tb_next
    if isinstance(error, SystemExit):
        return f"the program ended itself{where} (SystemExit: {error.code}); a client under test must go on living"
    return f"{type(error).__name__}{where}: {error}"


def not_a_client(made: object, protocol: type) -> str | None:
    """Say what a factory returned and why that is no client, None if it is one."""
    if isinstance(made, type):
        return f"the class {made.__name__} itself, not an instance of it"
    if inspect.isawaitable(made):
        if inspect.iscoroutine(made):
            made.close()
        return "something to be awaited: the factory must not be async"
    if isinstance(made, protocol):
        return None
    if made is None:
        return "None"
    wanted = [name for name in vars(protocol) if not name.startswith("_")]
    missing = [name for name in wanted if not callable(getattr(made, name, None))]
    return f"a {type(made).__name__} without {' and '.join(missing)}"
