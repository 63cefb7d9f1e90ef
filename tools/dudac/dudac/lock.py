# SPDX-License-Identifier: Apache-2.0
"""Locks of folders. The kernel drops the lock of a process that ends, however it does."""

import fcntl
import os
import pathlib


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
