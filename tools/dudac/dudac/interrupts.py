# SPDX-License-Identifier: Apache-2.0
"""Signals that end dudac. The handler notes the first one, and the next wait raises SystemExit, once: what is started
is noted for its end first, and neither a start nor an end is cut short, however many signals come.

await_files() is the wait of the main thread. The interpreter writes each signal into a pipe that it polls, too
(set_wakeup_fd), since the kernel may choose any thread for a signal, and one may come between a look and the wait.
"""

import contextlib
import math
import os
import select
import signal
import sys
import threading

ENDING = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
PIPE_BYTES = 1 << 16


class Interrupt:
    """What has come."""

    number = 0  # the first signal
    was_raised = False  # dudac is ending
    is_direct = False  # in interruptible()
    wakeups = ()  # what await_files() polls, too


def raise_interrupt() -> None:
    """Raises SystemExit if a signal has come and this has not been done."""
    if Interrupt.number and not Interrupt.was_raised:
        Interrupt.was_raised = True
        sys.exit(128 + Interrupt.number)


def handle_signal(number: int, _) -> None:
    Interrupt.number = Interrupt.number or number
    if Interrupt.is_direct:
        raise_interrupt()


def install_handlers() -> None:
    """A shell ignores SIGINT for what it begins in the background; only nohup means it."""
    reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    Interrupt.wakeups = (reader,)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in ENDING:
        if number == signal.SIGINT or signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handle_signal)


def end_handling() -> None:
    """Everything has ended. Signals are ignored, since Python restores their defaults before its own end."""
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
    raise_interrupt()


def await_files(files=(), seconds: float | None = None) -> list:
    """Waits until one of these descriptors can be read or is at its end, for so long at most; also less, if a signal
    comes that does not end dudac. Returns those that can."""
    raise_interrupt()
    poll = select.poll()
    for file in (*files, *Interrupt.wakeups):
        poll.register(file, select.POLLIN)
    ready = [file for file, _ in poll.poll(None if seconds is None else math.ceil(max(0, seconds) * 1000))]
    for file in Interrupt.wakeups:
        with contextlib.suppress(BlockingIOError):
            os.read(file, PIPE_BYTES)
    raise_interrupt()
    return [file for file in ready if file not in Interrupt.wakeups]


@contextlib.contextmanager
def interruptible():
    """Has a signal raise SystemExit anywhere in its block, in the main thread: for what blocks or takes long otherwise
    than in await_files(), and neither starts nor makes anything."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    raise_interrupt()
    before, Interrupt.is_direct = Interrupt.is_direct, True
    try:
        yield
    finally:
        Interrupt.is_direct = before


@contextlib.contextmanager
def limit_time(seconds: float):
    """Raises a TimeoutError in its block, also in a regular expression, which looks for signals in the main thread."""
    def end(_, __):
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, end)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        with interruptible():
            yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
