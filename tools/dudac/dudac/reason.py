# SPDX-License-Identifier: Apache-2.0
"""Says in one line why a service does not compile, does not start, or has crashed: the title of the page of --watch."""

import os
import re

from .config import strip_colors

COMPILER = re.compile(r"^(\S[^:\n]*:\d+)(?::\d+)?: ((?:fatal )?error: .*|undefined reference to .*)$", re.M)
UNUSABLE = re.compile(r"^the service \"[^\"]*\" cannot be used[^:]*: (.*)$")
OF_SERVICE = re.compile(r"^\S+Z \w+ +service [^ :]+: (.*)$")
# The handler of crashes says why, and then lists the functions on the stack, those of services with their files.
CRASH = re.compile(r"(?:^|Z error +)(the service \"[^\"]*\" has (?:ended, but a thread of it ran on and has )?"
                   r"(?:crashed: (SIG\w+)(?:\([^)]*\)|[^:(])*(?:: (.*))?|called .*))$")
FRAME = re.compile(r" #\d+ \S+\.duda\+0x[0-9a-f]+ \(([^,)]+), (.*):(\d+)\)$")


def shorten_file(file: str, services: list) -> str:
    """The path below the folder of the service that has it."""
    for service in services:
        if file.startswith(f"{service.folder}/"):
            return os.path.relpath(file, service.folder)
    return file


def describe_build(output: str, services: list) -> str:
    """FILE:LINE: the first error of a compiler or linker; nothing without one."""
    match = COMPILER.search(strip_colors(output))
    return f"{shorten_file(match[1], services)}: {match[2]}" if match else ""


def describe_start(problem: str, warnings: list) -> str:
    """What is wrong with a service, and what it has logged last before it failed."""
    match = UNUSABLE.match(problem)
    said = [line[1] for line in map(OF_SERVICE.search, warnings) if line]
    return ": ".join([match[1] if match else problem, *said[-1:]])


def describe_crash(lines: list, services: list) -> str:
    """SIGNAL in FUNCTION(), FILE:LINE, and the message of the C library; nothing without a crash."""
    match = next(filter(None, map(CRASH.search, lines)), None)
    if not match or not match[2]:
        return match[1] if match else ""
    frame = next(filter(None, map(FRAME.search, lines)), None)
    place = f" in {frame[1]}(), {shorten_file(frame[2], services)}:{frame[3]}" if frame else ""
    return f"{match[2]}{place}" + (f": {match[3]}" if match[3] else "")
