"""An interrupt ends a run in real time in good order, and the program without a traceback."""

import asyncio
import signal
import subprocess
import sys
import threading

import pytest

from harness.__main__ import main as program
from harness.interrupts import interrupts_ignored, run_interruptibly


def test_what_the_coroutine_returns_or_raises_comes_through() -> None:
    async def six() -> int:
        return 6

    async def fail() -> int:
        raise ValueError("no")

    assert run_interruptibly(six()) == 6
    with pytest.raises(ValueError, match="no"):
        run_interruptibly(fail())


def test_an_interrupt_cancels_it_but_not_in_the_midst_of_what_it_does() -> None:
    said = []

    async def work() -> None:
        task = asyncio.current_task()
        assert task is not None
        signal.raise_signal(signal.SIGINT)
        said.append(task.cancelling())
        try:
            await asyncio.Event().wait()
        finally:
            said.append(task.cancelling())

    with pytest.raises(KeyboardInterrupt):
        run_interruptibly(work())
    assert said == [0, 1]


def test_a_second_interrupt_does_not_wait_for_good_order() -> None:
    async def work() -> None:
        signal.raise_signal(signal.SIGINT)
        try:
            await asyncio.Event().wait()
        finally:
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        run_interruptibly(work())


def test_afterwards_signals_are_handled_as_before() -> None:
    run_interruptibly(asyncio.sleep(0))
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_handler_that_somebody_has_set_stays() -> None:
    came = []

    async def work() -> None:
        signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, lambda *_: came.append(True))
    try:
        run_interruptibly(work())
    finally:
        signal.signal(signal.SIGINT, before)
    assert came == [True]


def test_a_cancellation_of_another_kind_stays_one() -> None:
    async def work() -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        run_interruptibly(work())


def test_it_runs_in_a_thread_too() -> None:
    said = []
    thread = threading.Thread(target=lambda: said.append(run_interruptibly(asyncio.sleep(0, "done"))))
    thread.start()
    thread.join()
    assert said == ["done"]


SHOW = "import signal; print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)"


@pytest.mark.parametrize(("in_thread", "ignored"), [(False, "True"), (True, "False")])
def test_programs_that_are_started_while_interrupts_are_ignored_ignore_them(*, in_thread: bool, ignored: str) -> None:
    """In another thread nothing can be ignored, and nothing goes wrong."""
    said = []

    def start() -> None:
        with interrupts_ignored():
            said.append(subprocess.run([sys.executable, "-c", SHOW], capture_output=True, text=True, check=True).stdout)  # noqa: S603

    if in_thread:
        thread = threading.Thread(target=start)
        thread.start()
        thread.join()
    else:
        start()
    assert said == [f"{ignored}\n"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


INTERRUPTED_WHILE_LOADING = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "harness.cli":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
from harness.__main__ import main
main()
"""


def test_an_interrupt_while_the_program_is_being_loaded_ends_it_without_a_word() -> None:
    ended = subprocess.run([sys.executable, "-c", INTERRUPTED_WHILE_LOADING], capture_output=True, check=False)  # noqa: S603
    assert ended.returncode == -signal.SIGINT
    assert (ended.stdout, ended.stderr) == (b"", b"")


def test_once_it_is_loaded_an_interrupt_is_heard_again(monkeypatch: pytest.MonkeyPatch) -> None:
    handlers = []
    monkeypatch.setattr("harness.cli.main", lambda: handlers.append(signal.getsignal(signal.SIGINT)))
    program()
    assert handlers == [signal.default_int_handler]
