# SPDX-License-Identifier: Apache-2.0
"""Lets a running server open only so many further descriptors, by RLIMIT_NOFILE: it counts numbers, and the lowest free
one is always the next."""

import contextlib
import os
import resource

from .failing_memory import ERRORS, FAILURES
from .server import await_true

DESCRIPTORS_MAX = 40


def find_limit(pid, count):
    """The limit with which `count` more descriptors can be opened."""
    taken, limit = {int(name) for name in os.listdir(f"/proc/{pid}/fd")}, 0
    while count or limit in taken:
        count -= limit not in taken
        limit += 1
    return limit


@contextlib.contextmanager
def descriptors_below(server, limit):
    """With that of an idle server a connection that ends leaves none: its number is above the limit."""
    before = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (limit, before[1]))
    try:
        yield
    finally:
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, before)


def few_descriptors(server, count):
    return descriptors_below(server, find_limit(server.pid, count))


def no_descriptor_left(server):
    return few_descriptors(server, 0)


def exchange_with(server, opened, client, exchange, count):
    """Runs exchange(client) with so many descriptors to open, and once more. Returns whether they were enough."""
    with client() as one:
        if hasattr(one, "ping"):
            one.ping()  # loads HTTP/2, which opens descriptors for a moment
        await_true(lambda: server.descriptors() == opened + 1, what="one connection, and no other descriptor")
        with few_descriptors(server, count):
            try:
                status = exchange(one)
            except ERRORS:
                status = 0
        assert status in {0, 200, *FAILURES}, f"with {count} descriptors: {status}"
    if status != 200:
        with client() as one:
            assert exchange(one) == 200, f"behind {count} descriptors"
    return status == 200


def fail_each_descriptor(server, client, exchange):
    """Runs exchange(client) with 0, 1, ... descriptors to open until it has all that it needs, each time twice: behind
    the failure it succeeds. client() connects; the connection is there before. Returns how many were needed."""
    opened = server.descriptors()
    for count in range(DESCRIPTORS_MAX):
        if exchange_with(server, opened, client, exchange, count):
            return count
    raise AssertionError(f"{DESCRIPTORS_MAX} descriptors are not enough")


def fail_each_descriptor_of_new(start, exchange, most):
    """The same with a new server each time, for descriptors that stay, and always up to `most`: without some of them
    the exchange may succeed in another way. Returns how many were needed."""
    enough = []
    for count in range(most + 1):
        server = start()
        if exchange_with(server, server.descriptors(), server.connect, exchange, count):
            enough.append(count)
    assert enough, f"{most} descriptors are not enough"
    return enough[0]
