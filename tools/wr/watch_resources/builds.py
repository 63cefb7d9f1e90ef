# SPDX-License-Identifier: Apache-2.0
"""Builds what servers are made of, by `build` of their files: once per session, before there is a network namespace, in
which a package manager could fetch nothing."""

import os
import re
import signal
import subprocess
from typing import NamedTuple

from .data import Problem

BUILD_SECONDS, VERSION_SECONDS = 900, 5
LAST_LINES = 5  # of a compiler's output, in messages


class Built(NamedTuple):
    folder: str
    command: list
    compiler: str  # its version


def read_version(command):
    """The first line with a number that a command prints, or nothing."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=VERSION_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    numbered = [line.strip() for line in lines if re.search(r"\d\.\d|v\d", line)]
    return numbered[0] if numbered and not done.returncode else ""


def end_build(process):
    """Ends a build that is not complete, with the compilers that it has started."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    process.stdout.close()


def run_build(choice, command, folder):
    """Raises a Problem with the last lines of what the command printed."""
    shown = f"{choice.label} cannot be built: {' '.join(command)}"
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=folder,
            start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise Problem(f"{shown}: {error.strerror}") from None
    try:
        output = process.communicate(timeout=BUILD_SECONDS)[0]
    except subprocess.TimeoutExpired:
        raise Problem(f"{shown}: it did not end within {BUILD_SECONDS} s") from None
    finally:
        end_build(process)
    if process.returncode:
        lines = output.decode("utf-8", "replace").splitlines()
        last = [line.strip() for line in lines if line.strip()][-LAST_LINES:]
        raise Problem("\n  ".join([f"{shown}: it ended with status {process.returncode}; its last output:", *last]))


def build(choice, folder):
    """A Built, or None for a server that is not built. Raises a Problem."""
    if not choice.is_built():
        return None
    os.makedirs(folder, exist_ok=True)
    os.chmod(folder, 0o755)  # servers that root starts change to another user
    command, compiler = choice.fill_build(folder)
    run_build(choice, command, folder)
    return Built(folder, command, read_version(compiler))


def build_all(choices, folder, say=None):
    """{its key: Built or Problem} of all that are built; choices with the same command share it. `say` takes a sentence
    for each of them, before it is built."""
    found = {}
    for choice in choices:
        key = choice.build_key()
        if key in found or not choice.is_built():
            continue
        if say:
            say(f"building {choice.label}: {' '.join(choice.fill_build('BUILT')[0])}")
        try:
            found[key] = build(choice, os.path.join(folder, str(len(found))))
        except Problem as problem:
            found[key] = problem
    return found
