# SPDX-License-Identifier: Apache-2.0
"""Locks of folders. The kernel drops the lock of a process that ends, however it does."""

import fcntl
import os
import pathlib
import time

from . import DudacError
from .interrupts import await_files

POLL_SECONDS = 0.05


def lock_folder(path: pathlib.Path) -> int:
    """Returns the descriptor that has the lock; a BlockingIOError if another one has it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise
    except OSError:  # the file system has no locks
        pass
    return descriptor


def await_lock(path: pathlib.Path, folder: pathlib.Path, seconds: int, screen) -> int:
    """As lock_folder(), but waits for another dudac, which builds in `folder`."""
    deadline = None
    while True:
        try:
            return lock_folder(path)
        except BlockingIOError:
            if deadline is None:
                screen.notice(f"waiting for another dudac, which builds in {folder}")
                deadline = time.monotonic() + seconds
            elif time.monotonic() > deadline:
                raise DudacError(f"another dudac has been building in {folder} for {seconds} s") from None
            await_files(seconds=POLL_SECONDS)
