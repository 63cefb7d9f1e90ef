# SPDX-License-Identifier: Apache-2.0
"""Signals that end dudac. They raise SystemExit, so that what was started is ended and what was made is removed."""

import contextlib
import signal
import sys

ENDING = signal.SIGINT, signal.SIGTERM, signal.SIGHUP


class Pending:
    """What came while interrupts were held."""

    depth = 0
    number = 0


def handle_signal(number: int, _) -> None:
    if Pending.depth:
        Pending.number = number
    else:
        sys.exit(128 + number)


def install_handlers() -> None:
    """A shell ignores SIGINT for what it begins in the background; only nohup means it."""
    for number in ENDING:
        if number == signal.SIGINT or signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handle_signal)


@contextlib.contextmanager
def hold_interrupts():
    """Delays them: something is started or made here, and noted for its end."""
    Pending.depth += 1
    try:
        yield
    finally:
        Pending.depth -= 1
        if Pending.number and not Pending.depth:
            number, Pending.number = Pending.number, 0
            sys.exit(128 + number)


@contextlib.contextmanager
def limit_time(seconds: float):
    """Raises a TimeoutError in its block, also in a regular expression, which looks for signals in the main thread."""
    def end(_, __):
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, end)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def ignore_interrupts():
    """Ignores them: everything is ended here already. Each wait in this block has a limit."""
    before = [signal.signal(number, signal.SIG_IGN) for number in ENDING]
    try:
        yield
    finally:
        for number, handler in zip(ENDING, before):
            signal.signal(number, handler)
