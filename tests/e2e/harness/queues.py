# SPDX-License-Identifier: Apache-2.0
"""What the kernel holds for a connection."""

import pathlib

from .server import await_true


def queues(client):
    """At the server's end: bytes that the client has not taken, and bytes that the server has not read."""
    ends = [f"{end[1]:04X}" for end in (client.sock.getpeername(), client.sock.getsockname())]
    for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]:
        local, remote, _, sizes = line.split()[1:5]
        if [local.split(":")[1], remote.split(":")[1]] == ends:
            return tuple(int(size, 16) for size in sizes.split(":"))
    raise AssertionError("no such connection")


def await_full(client):
    """Until the server has sent more than the client's end has room for."""
    await_true(lambda: queues(client)[0] > 0, 30, "bytes that the client does not take")
