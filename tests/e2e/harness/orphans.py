# SPDX-License-Identifier: Apache-2.0
"""Ends the processes that a test run leaves behind, however the run ends. A plugin of pytest and, as a program, the
process that does it.

Each process of a run has the variable MARK in its environment, also daemons, successors after an upgrade and servers
below a supervisor, which belong to other sessions and have other parents. The process below waits until the run closes
its standard input, which the kernel does for a run that was killed.
"""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time

MARK = "TEST_RUN"
SECONDS = 10


# ── in the run ──


def pytest_configure(config):
    """Parallel workers are processes of the run, too, and are ended with it."""
    if hasattr(config, "workerinput"):
        return
    os.environ[MARK] = f"{os.getpid()}-{time.monotonic_ns()}"
    environment = {name: value for name, value in os.environ.items() if name != MARK}
    config.orphan_killer = subprocess.Popen(
        [sys.executable, __file__, f"{MARK}={os.environ[MARK]}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
        start_new_session=True,
        text=True,
    )


def pytest_unconfigure(config):
    process = getattr(config, "orphan_killer", None)
    if process:
        ended = process.communicate()[0].split()
        if ended:
            print(f"{len(ended)} processes were left behind and have been killed: {' '.join(ended)}", file=sys.stderr)


# ── the process that waits for its end ──


def find(mark):
    """The processes that have it, except zombies, whose environment is empty."""
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or belongs to another user
            if mark in (folder / "environ").read_bytes().split(b"\0"):
                yield int(folder.name)


def kill_all(mark):
    """A process may start another one while this looks; returns the numbers of all."""
    killed, deadline = set(), time.monotonic() + SECONDS
    while (found := set(find(mark))) and time.monotonic() < deadline:
        for pid in found:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        killed |= found
        time.sleep(0.005)
    return killed


def wait_and_kill(mark):
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    sys.stdin.buffer.read()
    killed = kill_all(mark)
    with contextlib.suppress(OSError):
        print(*sorted(killed), flush=True)


if __name__ == "__main__":
    wait_and_kill(os.fsencode(sys.argv[1]))
