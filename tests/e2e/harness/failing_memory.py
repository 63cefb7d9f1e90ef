# SPDX-License-Identifier: Apache-2.0
"""Has the n-th allocation of a running server fail, by the counter that unit tests use (lib/core/base/arena.h).

    memory = FailingMemory(server)
    memory.fail(3)
    ...
    assert memory.end()
"""

import re
import struct
import subprocess

import pytest

from . import build
from .client import ProtocolError

FAILURES, ALLOCATIONS_MAX = {500, 502, 503}, 400
ERRORS = (ProtocolError, OSError)  # the connection has ended, or the response was cut

NAME = "mk__alloc_countdown"
only_sanitized = pytest.mark.skipif(not build.SANITIZED, reason="sanitizers find what is used after a failure")


def find_symbol(program):
    """The address of the counter in the file of the program."""
    done = subprocess.run(["nm", program], capture_output=True, text=True, check=True)
    found = re.search(rf"^([0-9a-f]+) [bBdD] {NAME}$", done.stdout, re.M)
    assert found, f"{program} has no symbol {NAME}"
    return int(found[1], 16)


def is_movable(program):
    """Whether the addresses of its symbols count from where it was loaded: the type of the file is ET_DYN."""
    with open(program, "rb") as file:
        return struct.unpack_from("<H", file.read(18), 16)[0] == 3


class FailingMemory:
    """As long as none was chosen by fail(), no allocation fails."""

    def __init__(self, server):
        program = str(build.binary())
        self.address = find_symbol(program)
        if is_movable(program):
            maps = open(f"/proc/{server.process.pid}/maps", encoding="utf-8").read()
            self.address += min(int(row.split("-")[0], 16) for row in maps.splitlines() if row.endswith(program))
        self.memory = open(f"/proc/{server.process.pid}/mem", "r+b", buffering=0)

    def write(self, count):
        self.memory.seek(self.address)
        self.memory.write(struct.pack("q", count))

    def fail(self, n):
        """The n-th allocation from now on fails, from 0."""
        self.write(n)

    def has_failed(self):
        self.memory.seek(self.address)
        return struct.unpack("q", self.memory.read(8))[0] < 0

    def end(self):
        """Returns whether it has failed; none fails from now on."""
        failed = self.has_failed()
        self.write(-1)
        return failed

    def close(self):
        self.memory.close()


def fail_each(server, exchange):
    """Runs exchange() until each of its allocations has failed once, and after each failure once as usual.

    It returns the status of its response; with an allocation that fails also FAILURES, or one of ERRORS is raised.
    Returns how many allocations have failed.
    """
    memory, n, failed = FailingMemory(server), 0, True
    while failed:
        assert n < ALLOCATIONS_MAX
        memory.fail(n)
        try:
            status = exchange()
            assert status in {200, *FAILURES}, f"the failure of allocation {n}: {status}"
        except ERRORS:
            pass
        failed = memory.end()
        assert exchange() == 200, f"behind the failure of allocation {n}"
        n += 1
    memory.close()
    return n - 1
