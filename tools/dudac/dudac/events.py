# SPDX-License-Identifier: Apache-2.0
"""A queue of what other threads tell the main thread, which signals can interrupt while it waits."""

import collections
import contextlib
import os
import queue
import time

from .interrupts import await_files, raise_interrupt


class Events:
    """Items are (kind, value)."""

    def __init__(self):
        self.items = collections.deque()
        self.count = os.eventfd(0, os.EFD_SEMAPHORE | os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def put(self, item: tuple) -> None:
        self.items.append(item)
        os.eventfd_write(self.count, 1)

    def get(self, seconds: float | None = None) -> tuple:
        """Waits for an item, for so long at most; then raises queue.Empty."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while True:
            raise_interrupt()  # also while there is always an item
            with contextlib.suppress(BlockingIOError):
                os.eventfd_read(self.count)
                return self.items.popleft()
            rest = None if deadline is None else deadline - time.monotonic()
            if rest is not None and rest <= 0:
                raise queue.Empty
            await_files([self.count], rest)
