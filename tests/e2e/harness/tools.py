# SPDX-License-Identifier: Apache-2.0
"""Programs that no package of Debian has: fetched once into build/tools. Where that fails, their tests say so."""

import contextlib
import fcntl
import os
import subprocess

import pytest

from . import build

TOOLS = build.TOP / "build" / "tools"
SECONDS = 240


@contextlib.contextmanager
def alone(name):
    """One of the parallel workers fetches it for all."""
    TOOLS.mkdir(parents=True, exist_ok=True)
    with open(TOOLS / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def fetch(name, *commands, env=None):
    """Runs the commands; one that fails or takes too long skips the test, in capitals."""
    clean = {k: v for k, v in os.environ.items() if k not in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS")}
    for command in commands:
        try:
            done = subprocess.run(
                command, env={**clean, **(env or {})}, capture_output=True, text=True, timeout=SECONDS
            )
        except subprocess.TimeoutExpired:
            pytest.skip(f"{name.upper()} COULD NOT BE FETCHED IN TIME, IT DOES NOT RUN")
        if done.returncode:
            output = (done.stderr or done.stdout).strip()[-300:]
            pytest.skip(f"{name.upper()} COULD NOT BE FETCHED, IT DOES NOT RUN: {output}")
