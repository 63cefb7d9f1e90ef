# SPDX-License-Identifier: Apache-2.0
"""How many bytes requests may add to the error log: 1 KB a second, and at once what a limit allows in ten seconds."""

import contextlib
import time

SECOND_BYTES, AT_ONCE_BYTES, LINE_BYTES_MAX = 1024, 10 * 1024, 1200


@contextlib.contextmanager
def limited_growth(server):
    """Around requests of which each could write a line: yields a function that returns the lines since. The longer they
    take, the more they may write, so that a slow machine fails no test."""
    before, begin = len(server.lines), time.monotonic()

    def lines():
        return [line for line in server.lines[before:] if " info  probe: " not in line]  # of the tests' plugin

    yield lines
    seconds = time.monotonic() - begin
    grown = sum(len(line) + 1 for line in lines())
    assert grown <= AT_ONCE_BYTES + LINE_BYTES_MAX + SECOND_BYTES * seconds, "\n".join([f"{grown} bytes:", *lines()])
