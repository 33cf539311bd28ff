"""An interrupt ends a run in real time in good order."""

import asyncio
import signal
import threading

import pytest

from harness.interrupts import run_interruptibly


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
